{{/* What the values amount to. A condition is "true" or empty. */}}

{{/* Whether the pods forward requests. */}}
{{- define "evenkeel.hasGateway" -}}
{{- if ne .Values.mode "api" }}true{{ end -}}
{{- end -}}

{{- define "evenkeel.hasApi" -}}
{{- if or (eq .Values.mode "api") .Values.api.enabled }}true{{ end -}}
{{- end -}}

{{/* The listen address as it stands before a port: an IPv6 address is in brackets. */}}
{{- define "evenkeel.listenHost" -}}
{{- $address := .Values.listenAddress -}}
{{- if and (contains ":" $address) (not (hasPrefix "[" $address)) }}[{{ $address }}]{{ else }}{{ $address }}{{ end -}}
{{- end -}}

{{- define "evenkeel.isEmbedded" -}}
{{- if and (include "evenkeel.hasApi" .) (eq .Values.api.store "embedded") }}true{{ end -}}
{{- end -}}

{{- define "evenkeel.hasObjects" -}}
{{- if or .Values.objects.existingConfigMap .Values.objects.files (not (include "evenkeel.hasApi" .)) }}true{{ end -}}
{{- end -}}

{{/* The smallest number of pods, outside of disruptions. */}}
{{- define "evenkeel.podsMin" -}}
{{- if .Values.autoscaling.enabled }}{{ .Values.autoscaling.minReplicas }}{{ else }}{{ .Values.replicas }}{{ end -}}
{{- end -}}

{{/* The largest number of pods that admit requests at the same time: a rolling update starts one more. */}}
{{- define "evenkeel.podsMax" -}}
{{- $pods := int .Values.replicas -}}
{{- if .Values.autoscaling.enabled }}{{ $pods = int .Values.autoscaling.maxReplicas }}{{ end -}}
{{- if include "evenkeel.isEmbedded" . }}{{ $pods }}{{ else }}{{ add $pods 1 }}{{ end -}}
{{- end -}}

{{/* Whether the pods share the capacity. */}}
{{- define "evenkeel.isFleet" -}}
{{- if and (eq .Values.mode "gateway") .Values.fleet.enabled }}true{{ end -}}
{{- end -}}

{{/* How many requests a pod forwards at a time: a number, or `auto`. A sidecar alone is in front of its service, so it can find out, and
     pods that share their seats find out together. */}}
{{- define "evenkeel.concurrency" -}}
{{- if and .Values.capacity (include "evenkeel.isFleet" .) -}}
{{- int .Values.capacity -}}
{{- else if .Values.capacity -}}
{{- div (int .Values.capacity) (int (include "evenkeel.podsMax" .)) -}}
{{- else if kindIs "string" .Values.concurrency -}}
{{- .Values.concurrency -}}
{{- else if .Values.concurrency -}}
{{- int .Values.concurrency -}}
{{- else if and (or (eq .Values.mode "sidecar") (include "evenkeel.isFleet" .)) (ne .Values.preset "kubernetes") -}}
auto
{{- end -}}
{{- end -}}

{{/* Seconds until the gateway has drained. */}}
{{- define "evenkeel.drainSeconds" -}}
{{- add (int .Values.drain.noticeSeconds) (int .Values.drain.seconds) -}}
{{- end -}}

{{/* Seconds that the service in a sidecar pod stays after the pod is told to stop, so that running requests can finish. */}}
{{- define "evenkeel.serviceStaysSeconds" -}}
{{- add (int (include "evenkeel.drainSeconds" .)) 5 -}}
{{- end -}}

{{/* Whether the service in a sidecar pod has a preStop of its own. A container can have only one. */}}
{{- define "evenkeel.serviceHasPreStop" -}}
{{- if (default dict .Values.sidecar.container.lifecycle).preStop }}true{{ end -}}
{{- end -}}

{{/* Kubernetes 1.30 and newer. */}}
{{- define "evenkeel.canSleep" -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{/* Whether the container sleeps for drain.noticeSeconds before it is told to stop. Gateways keep their listeners open by
     themselves; the API alone does not. With the embedded store, it would only take longer until the next pod can start. */}}
{{- define "evenkeel.sleepsBeforeStop" -}}
{{- $isApiAlone := not (or (include "evenkeel.hasGateway" .) (include "evenkeel.isEmbedded" .)) -}}
{{- if and $isApiAlone .Values.drain.noticeSeconds (include "evenkeel.canSleep" .) }}true{{ end -}}
{{- end -}}

{{/* Must exceed all of the above. The API needs ten seconds for running requests, and some for its store. */}}
{{- define "evenkeel.graceSeconds" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- add (int (include "evenkeel.serviceStaysSeconds" .)) (int .Values.sidecar.stopSeconds) 5 -}}
{{- else if include "evenkeel.hasGateway" . -}}
{{- add (int (include "evenkeel.drainSeconds" .)) 10 -}}
{{- else -}}
{{- add (int .Values.drain.noticeSeconds) 40 -}}
{{- end -}}
{{- end -}}
