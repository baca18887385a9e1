{{/* Values that contradict each other. values.schema.json has what can be said about one value alone. */}}
{{- define "evenkeel.checks" -}}
{{- $isGateway := include "evenkeel.hasGateway" . -}}
{{- $hasApi := include "evenkeel.hasApi" . -}}
{{- /* A key without a value, under which everything is commented out, is null. */ -}}
{{- $settings := default dict .Values.settings -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "evenkeel.fullname" .)) -}}
{{- fail (printf "%s, which is made from the name of the release, cannot be the name of a Service: set fullnameOverride to lower-case letters, digits and hyphens, with a letter first" (include "evenkeel.fullname" .)) -}}
{{- end -}}
{{- if and $isGateway (not .Values.upstreams) (not .Values.extProc.enabled) -}}
{{- fail "upstreams is empty: set the service that requests are forwarded to, for example --set upstreams[0].url=http://my-service:80" -}}
{{- end -}}
{{- if not $isGateway -}}
{{- range $name, $value := dict "upstreams" .Values.upstreams "capacity" .Values.capacity "concurrency" .Values.concurrency "settings" $settings "tls.secretName" .Values.tls.secretName -}}
{{- if $value -}}
{{- fail (printf "%s has no meaning in mode api, which forwards no requests: remove it, or set mode=gateway and api.enabled=true" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.mode "sidecar" -}}
{{- if .Values.capacity -}}
{{- fail "capacity is for a service behind all pods, and in mode sidecar each pod has its own: set concurrency to what one pod can process" -}}
{{- end -}}
{{- if not (default dict .Values.sidecar.container).image -}}
{{- fail "sidecar.container.image is missing: in mode sidecar, sidecar.container is the container of your service" -}}
{{- end -}}
{{- if not (or (include "evenkeel.serviceHasPreStop" .) (include "evenkeel.canSleep" .)) -}}
{{- fail (printf "Kubernetes %s has no preStop.sleep: set sidecar.container.lifecycle.preStop.exec.command to a command that takes %s seconds" .Capabilities.KubeVersion.Version (include "evenkeel.serviceStaysSeconds" .)) -}}
{{- end -}}
{{- end -}}
{{- /* The ports of the container of Evenkeel, by the values that set them. */ -}}
{{- $ports := dict -}}
{{- if $isGateway -}}
{{- $_ := set $ports "http" (int .Values.ports.http) -}}
{{- $_ := set $ports "admin" (int .Values.ports.admin) -}}
{{- if .Values.extProc.enabled }}{{ $_ := set $ports "extProc" (int .Values.ports.extProc) }}{{ end -}}
{{- end -}}
{{- if $hasApi -}}
{{- $_ := set $ports "api" (int .Values.ports.api) -}}
{{- end -}}
{{- range $name, $port := $ports -}}
{{- range $other, $otherPort := $ports -}}
{{- if and (lt $name $other) (eq $port $otherPort) -}}
{{- fail (printf "ports.%s and ports.%s are both %d: only one listener can have a port" $name $other $port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.mode "sidecar" -}}
{{- if eq (default "" .Values.sidecar.container.name) "evenkeel" -}}
{{- fail "sidecar.container.name is evenkeel, which is the name of the gateway's container: choose another name" -}}
{{- end -}}
{{- range $own := default list .Values.sidecar.container.ports -}}
{{- range $name, $port := $ports -}}
{{- if eq (int $own.containerPort) $port -}}
{{- fail (printf "sidecar.container.ports has %d, which is ports.%s of the gateway: containers of a pod share its ports, so change one of them" $port $name) -}}
{{- end -}}
{{- if eq (default "" $own.name) $name -}}
{{- fail (printf "sidecar.container.ports has the name %s, which is the name of a port of the gateway: choose another name" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if hasKey (default dict $.Values.podLabels) $label -}}
{{- fail (printf "podLabels has %s, by which the chart selects its pods: remove it, or set nameOverride" $label) -}}
{{- end -}}
{{- end -}}
{{- if and $isGateway .Values.capacity .Values.concurrency -}}
{{- fail "capacity and concurrency are both set: set capacity for the service as a whole, or concurrency for each pod" -}}
{{- end -}}
{{- if and $isGateway (not (include "evenkeel.concurrency" .)) -}}
{{- fail "how much the service can process is missing: set capacity (requests at a time, for the service as a whole) or concurrency (for each pod); several pods in front of one service can find it out only if they share their seats (fleet.enabled)" -}}
{{- end -}}
{{- if and $isGateway (eq (include "evenkeel.concurrency" .) "0") -}}
{{- fail (printf "capacity %d is too small for up to %s pods (replicas, or autoscaling.maxReplicas, and one more during an update): each needs at least one seat" (int .Values.capacity) (include "evenkeel.podsMax" .)) -}}
{{- end -}}
{{- if .Values.fleet.enabled -}}
{{- if ne .Values.mode "gateway" -}}
{{- fail (printf "fleet.enabled is for pods in front of one service, and in mode %s there are none: set fleet.enabled=false" .Values.mode) -}}
{{- end -}}
{{- if and .Values.concurrency (not (hasPrefix "auto" (toString .Values.concurrency))) -}}
{{- fail "fleet.enabled needs capacity instead of concurrency: how many requests the service can process at a time, for all pods together; without either, the pods find it out" -}}
{{- end -}}
{{- if eq .Values.preset "kubernetes" -}}
{{- fail "fleet.enabled needs preset=plain: under preset kubernetes, levels may use a little more than there is" -}}
{{- end -}}
{{- if not (or .Values.fleet.endpoints (and $hasApi (eq .Values.api.store "etcd"))) -}}
{{- fail "fleet.endpoints is empty: name the members of etcd, for example --set fleet.endpoints[0]=etcd:2379, or keep the objects there with api.store=etcd" -}}
{{- end -}}
{{- if and (not .Values.fleet.endpoints) (or .Values.fleet.tls.secretName .Values.fleet.user) -}}
{{- fail "fleet.tls and fleet.user are for the etcd of fleet.endpoints, which is empty: set it, or use api.etcd.tls and api.etcd.user" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.fleet.tls.clientCertificate (not .Values.fleet.tls.secretName) -}}
{{- fail "fleet.tls.clientCertificate needs fleet.tls.secretName, the Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if ne (empty .Values.fleet.user) (empty .Values.fleet.passwordSecretName) -}}
{{- fail "fleet.user and fleet.passwordSecretName need each other" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if include "evenkeel.isEmbedded" . -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "autoscaling needs api.store=etcd: only one pod can open an embedded store" -}}
{{- end -}}
{{- if ne (int .Values.replicas) 1 -}}
{{- fail (printf "replicas is %d, but only one pod can open an embedded store: set replicas=1, or api.store=etcd" (int .Values.replicas)) -}}
{{- end -}}
{{- if eq .Values.mode "sidecar" -}}
{{- fail "mode sidecar with the API needs api.store=etcd: with an embedded store, each pod would have its own objects" -}}
{{- end -}}
{{- end -}}
{{- if and $hasApi (not .Values.api.secretName) -}}
{{- fail "api.secretName is missing: the API needs a Secret with ca.crt, ca.key and admin-token.csv. The chart's README.md has the commands that make it" -}}
{{- end -}}
{{- if and $hasApi (eq .Values.api.store "etcd") (not .Values.api.etcd.endpoints) -}}
{{- fail "api.etcd.endpoints is empty: name the members of etcd, for example --set api.etcd.endpoints[0]=etcd:2379" -}}
{{- end -}}
{{- if and .Values.api.etcd.tls.clientCertificate (not .Values.api.etcd.tls.secretName) -}}
{{- fail "api.etcd.tls.clientCertificate needs api.etcd.tls.secretName, the Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if ne (empty .Values.api.etcd.user) (empty .Values.api.etcd.passwordSecretName) -}}
{{- fail "api.etcd.user and api.etcd.passwordSecretName need each other" -}}
{{- end -}}
{{- if and .Values.tls.clientCaSecretName (not .Values.tls.secretName) -}}
{{- fail "tls.clientCaSecretName needs tls.secretName: without TLS there are no client certificates" -}}
{{- end -}}
{{- if and (eq .Values.mode "api") .Values.serviceMonitor.enabled (not .Values.serviceMonitor.apiTokenSecretName) -}}
{{- fail "serviceMonitor.apiTokenSecretName is missing: the metrics of the API need the token of a user in the group system:monitoring" -}}
{{- end -}}
{{- if and .Values.objects.files .Values.objects.existingConfigMap -}}
{{- fail "objects.files and objects.existingConfigMap are both set: choose one" -}}
{{- end -}}
{{- range $name, $advice := dict "listen" "use listenAddress, ports.http and tls" "upstreams" "use upstreams" "concurrency" "use capacity or concurrency" "preset" "use preset" "objects" "use objects.files or objects.existingConfigMap" -}}
{{- if hasKey $settings $name -}}
{{- fail (printf "settings.%s is set by the chart: %s" $name $advice) -}}
{{- end -}}
{{- end -}}
{{- if or (hasKey (default dict $settings.timeouts) "drain") (hasKey (default dict $settings.timeouts) "drainNotice") -}}
{{- fail "settings.timeouts.drain and settings.timeouts.drainNotice are set by the chart: use drain.seconds and drain.noticeSeconds, from which it computes how long Kubernetes waits" -}}
{{- end -}}
{{- if hasKey (default dict $settings.extProc) "address" -}}
{{- fail "settings.extProc.address is set by the chart: use extProc.enabled and ports.extProc" -}}
{{- end -}}
{{- if or (hasKey (default dict $settings.admin) "address") (hasKey (default dict $settings.admin) "tokenFile") -}}
{{- fail "settings.admin.address and settings.admin.tokenFile are set by the chart: use ports.admin and admin.existingSecret" -}}
{{- end -}}
{{- end -}}
