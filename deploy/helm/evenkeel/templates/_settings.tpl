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
{{- $_ := set $settings "listen" (list $listen) -}}
{{- $admin := dict "address" (printf "%s:%d" (include "evenkeel.listenHost" .) (int .Values.ports.admin)) -}}
{{- $_ := set $settings "admin" (merge $admin (default dict $settings.admin)) -}}
{{- $_ := set $settings "upstreams" .Values.upstreams -}}
{{- $_ := set $settings "concurrency" (int (include "evenkeel.concurrency" .)) -}}
{{- $drain := dict "drainNotice" (printf "%ds" (int .Values.drain.noticeSeconds)) "drain" (printf "%ds" (int .Values.drain.seconds)) -}}
{{- $_ := set $settings "timeouts" (merge $drain (default dict $settings.timeouts)) -}}
{{- $_ := set $settings "log" (merge (default dict $settings.log) (dict "format" "json")) -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The settings that need a restart. All others take effect when the kubelet has updated the file. */}}
{{- define "evenkeel.restartSettings" -}}
{{- $settings := fromYaml (include "evenkeel.settings" .) -}}
{{- pick $settings "listen" "admin" "preset" "workers" | toJson }} {{ $settings.log.format -}}
{{- end -}}
