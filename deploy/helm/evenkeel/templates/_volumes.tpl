{{/* The volumes of a pod, and where the container of Evenkeel mounts them. Files that change are never mounted by subPath: the
     kubelet does not update those. */}}

{{- define "evenkeel.volumeMounts" -}}
{{- if include "evenkeel.hasGateway" . }}
- name: settings
  mountPath: /etc/evenkeel/settings
  readOnly: true
{{- end }}
{{- if include "evenkeel.hasObjects" . }}
- name: objects
  mountPath: /etc/evenkeel/objects
  readOnly: true
{{- end }}
{{- if and (include "evenkeel.hasGateway" .) .Values.tls.secretName }}
- name: tls
  mountPath: /etc/evenkeel/tls
  readOnly: true
{{- if .Values.tls.clientCaSecretName }}
- name: client-ca
  mountPath: /etc/evenkeel/client-ca
  readOnly: true
{{- end }}
{{- end }}
{{- if include "evenkeel.hasApi" . }}
- name: data
  mountPath: /var/lib/evenkeel
{{- range list "ca.crt" "ca.key" "admin-token.csv" }}
- name: api-authority
  mountPath: /var/lib/evenkeel/{{ . }}
  subPath: {{ . }}
  readOnly: true
{{- end }}
{{- if .Values.api.tokenSecretName }}
- name: api-tokens
  mountPath: /etc/evenkeel/api-tokens
  readOnly: true
{{- end }}
{{- if and (eq .Values.api.store "etcd") .Values.api.etcd.tls.secretName }}
- name: etcd-tls
  mountPath: /etc/evenkeel/etcd-tls
  readOnly: true
{{- end }}
{{- if and (eq .Values.api.store "etcd") .Values.api.etcd.user }}
- name: etcd-password
  mountPath: /etc/evenkeel/etcd-password
  readOnly: true
{{- end }}
{{- end }}
{{- if include "evenkeel.isFleet" . }}
{{- if .Values.fleet.tls.secretName }}
- name: fleet-tls
  mountPath: /etc/evenkeel/fleet-tls
  readOnly: true
{{- end }}
{{- if .Values.fleet.user }}
- name: fleet-password
  mountPath: /etc/evenkeel/fleet-password
  readOnly: true
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "evenkeel.volumes" -}}
{{- if include "evenkeel.hasGateway" . }}
- name: settings
  configMap:
    name: {{ include "evenkeel.fullname" . }}-settings
{{- end }}
{{- if include "evenkeel.hasObjects" . }}
- name: objects
  configMap:
    name: {{ include "evenkeel.objectsConfigMap" . }}
{{- end }}
{{- if and (include "evenkeel.hasGateway" .) .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    defaultMode: 288 # 0440
{{- if .Values.tls.clientCaSecretName }}
- name: client-ca
  secret:
    secretName: {{ .Values.tls.clientCaSecretName }}
    defaultMode: 288 # 0440
    items:
    - key: ca.crt
      path: ca.crt
{{- end }}
{{- end }}
{{- if include "evenkeel.hasApi" . }}
{{- if not (include "evenkeel.isEmbedded" .) }}
- name: data
  emptyDir: {}
{{- end }}
- name: api-authority
  secret:
    secretName: {{ .Values.api.secretName }}
    defaultMode: 288 # 0440
{{- if .Values.api.tokenSecretName }}
- name: api-tokens
  secret:
    secretName: {{ .Values.api.tokenSecretName }}
    defaultMode: 288 # 0440
{{- end }}
{{- if and (eq .Values.api.store "etcd") .Values.api.etcd.tls.secretName }}
- name: etcd-tls
  secret:
    secretName: {{ .Values.api.etcd.tls.secretName }}
    defaultMode: 288 # 0440
{{- end }}
{{- if and (eq .Values.api.store "etcd") .Values.api.etcd.user }}
- name: etcd-password
  secret:
    secretName: {{ .Values.api.etcd.passwordSecretName }}
    defaultMode: 288 # 0440
{{- end }}
{{- end }}
{{- if include "evenkeel.isFleet" . }}
{{- if .Values.fleet.tls.secretName }}
- name: fleet-tls
  secret:
    secretName: {{ .Values.fleet.tls.secretName }}
    defaultMode: 288 # 0440
{{- end }}
{{- if .Values.fleet.user }}
- name: fleet-password
  secret:
    secretName: {{ .Values.fleet.passwordSecretName }}
    defaultMode: 288 # 0440
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- if eq .Values.mode "sidecar" }}
{{- with .Values.sidecar.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}
