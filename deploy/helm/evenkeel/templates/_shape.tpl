{{/* What the values amount to. A condition is "true" or empty. */}}

{{/* Whether the pods forward requests. */}}
{{- define "evenkeel.hasGateway" -}}
{{- if ne .Values.mode "api" }}true{{ end -}}
{{- end -}}

{{- define "evenkeel.hasApi" -}}
{{- if or (eq .Values.mode "api") .Values.api.enabled }}true{{ end -}}
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

{{- define "evenkeel.concurrency" -}}
{{- if .Values.capacity -}}
{{- div (int .Values.capacity) (int (include "evenkeel.podsMax" .)) -}}
{{- else -}}
{{- int .Values.concurrency -}}
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

{{/* Must exceed all of the above; ten seconds are for the API and its store. */}}
{{- define "evenkeel.graceSeconds" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- add (int (include "evenkeel.serviceStaysSeconds" .)) (int .Values.sidecar.stopSeconds) 5 -}}
{{- else if include "evenkeel.hasGateway" . -}}
{{- add (int (include "evenkeel.drainSeconds" .)) 10 -}}
{{- else -}}
45
{{- end -}}
{{- end -}}
