{{/* evenkeel.yaml: the settings that the chart decides, over those in `settings`. */}}
{{- define "evenkeel.settings" -}}
{{- $settings := deepCopy (default dict .Values.settings) -}}
{{- $listen := dict "address" (printf "%s:%d" (include "evenkeel.listenHost" .) (int .Values.ports.http)) -}}
{{- if .Values.tls.secretName -}}
{{- $tls := dict "certificate" "/etc/evenkeel/tls/tls.crt" "key" "/etc/evenkeel/tls/tls.key" -}}
{{- if .Values.tls.clientCaSecretName }}{{ $_ := set $tls "clientCa" "/etc/evenkeel/client-ca/ca.crt" }}{{ end -}}
{{- $_ := set $listen "tls" $tls -}}
{{- end -}}
{{- $_ := set $settings "preset" .Values.preset -}}
{{- if .Values.upstreams }}{{ $_ := set $settings "listen" (list $listen) }}{{ end -}}
{{- $admin := dict "address" (printf "%s:%d" (include "evenkeel.listenHost" .) (int .Values.ports.admin)) -}}
{{- $_ := set $settings "admin" (merge $admin (default dict $settings.admin)) -}}
{{- if .Values.upstreams }}{{ $_ := set $settings "upstreams" .Values.upstreams }}{{ end -}}
{{- if .Values.extProc.enabled -}}
{{- $extProc := dict "address" (printf "%s:%d" (include "evenkeel.listenHost" .) (int .Values.ports.extProc)) -}}
{{- $_ := set $settings "extProc" (merge $extProc (default dict $settings.extProc)) -}}
{{- end -}}
{{- $concurrency := include "evenkeel.concurrency" . -}}
{{- if regexMatch "^[0-9]+$" $concurrency }}{{ $_ := set $settings "concurrency" (int $concurrency) }}{{ else }}{{ $_ := set $settings "concurrency" $concurrency }}{{ end -}}
{{- if include "evenkeel.isFleet" . -}}
{{- $_ := set $settings "fleet" (merge (fromYaml (include "evenkeel.fleet" .)) (default dict $settings.fleet)) -}}
{{- end -}}
{{- $drain := dict "drainNotice" (printf "%ds" (int .Values.drain.noticeSeconds)) "drain" (printf "%ds" (int .Values.drain.seconds)) -}}
{{- $_ := set $settings "timeouts" (merge $drain (default dict $settings.timeouts)) -}}
{{- $_ := set $settings "log" (merge (default dict $settings.log) (dict "format" "json")) -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The fleet of the pods. Without endpoints of its own, its etcd is that of the objects, which flags name. */}}
{{- define "evenkeel.fleet" -}}
service: {{ include "evenkeel.fullname" . }}
generation: {{ int .Values.fleet.generation }}
{{- with .Values.fleet.endpoints }}
endpoints:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- if .Values.fleet.tls.secretName }}
tls:
  ca: /etc/evenkeel/fleet-tls/ca.crt
  {{- if .Values.fleet.tls.clientCertificate }}
  certificate: /etc/evenkeel/fleet-tls/tls.crt
  key: /etc/evenkeel/fleet-tls/tls.key
  {{- end }}
  {{- with .Values.fleet.tls.serverName }}
  serverName: {{ . | quote }}
  {{- end }}
{{- end }}
{{- if .Values.fleet.user }}
user: {{ .Values.fleet.user | quote }}
passwordFile: /etc/evenkeel/fleet-password/password
{{- end }}
{{- end -}}

{{/* The settings that need a restart. All others take effect when the kubelet has updated the file. */}}
{{- define "evenkeel.restartSettings" -}}
{{- $settings := fromYaml (include "evenkeel.settings" .) -}}
{{- $names := list "listen" "admin" "preset" "workers" -}}
{{- if $settings.extProc }}{{ $names = append $names "extProc" }}{{ end -}}
{{- if $settings.fleet }}{{ $names = concat $names (list "fleet" "concurrency") }}{{ end -}}
{{- range $names }}{{ dict . (get $settings .) | toJson }}{{ end }} {{ $settings.log.format -}}
{{- end -}}
