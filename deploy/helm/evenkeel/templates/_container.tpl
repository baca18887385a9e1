{{/* The container of Evenkeel. */}}
{{- define "evenkeel.container" -}}
name: evenkeel
image: {{ include "evenkeel.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
{{ include "evenkeel.args" . }}
{{- if or (include "evenkeel.hasGateway" .) .Values.extraEnv }}
env:
{{- if include "evenkeel.hasGateway" . }}
- name: EVENKEEL_ADMIN_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "evenkeel.adminSecret" . }}
      key: {{ .Values.admin.secretKey | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
ports:
{{- if include "evenkeel.hasGateway" . }}
{{- if .Values.upstreams }}
- name: http
  containerPort: {{ .Values.ports.http }}
{{- end }}
{{- if .Values.extProc.enabled }}
- name: grpc-ext-proc
  containerPort: {{ .Values.ports.extProc }}
{{- end }}
- name: admin
  containerPort: {{ .Values.ports.admin }}
{{- end }}
{{- if include "evenkeel.hasApi" . }}
- name: api
  containerPort: {{ .Values.ports.api }}
{{- end }}
livenessProbe:
  httpGet:
    path: /livez
    {{- include "evenkeel.healthPort" . | nindent 4 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# Fails as soon as the pod shuts down, so that it gets no new requests.
readinessProbe:
  httpGet:
    path: /readyz
    {{- include "evenkeel.healthPort" . | nindent 4 }}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: {{ if include "evenkeel.hasGateway" . }}1{{ else }}3{{ end }}
{{- if include "evenkeel.sleepsBeforeStop" . }}
# New connections still arrive for a moment, until the pod is removed from the endpoints of the Service.
lifecycle:
  preStop:
    sleep:
      seconds: {{ int .Values.drain.noticeSeconds }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  {{- with .Values.runAsUser }}
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  {{- end }}
  capabilities:
    drop: ["ALL"]
  seccompProfile:
    type: RuntimeDefault
volumeMounts:
{{- include "evenkeel.volumeMounts" . }}
{{- end -}}

{{/* The API alone has no admin endpoint; its own port has the health checks. */}}
{{- define "evenkeel.healthPort" -}}
{{- if include "evenkeel.hasGateway" . -}}
port: admin
{{- else -}}
port: api
scheme: HTTPS
{{- end -}}
{{- end -}}

{{- define "evenkeel.args" -}}
- serve
{{- if include "evenkeel.hasGateway" . }}
- --config=/etc/evenkeel/settings/evenkeel.yaml
{{- else }}
- --api-only
- --preset={{ .Values.preset }}
- --log-format=json
{{- end }}
{{- if include "evenkeel.hasObjects" . }}
- --objects=/etc/evenkeel/objects
{{- end }}
{{- if include "evenkeel.hasApi" . }}
{{- $name := printf "%s-api" (include "evenkeel.fullname" .) }}
- --data-dir=/var/lib/evenkeel
- {{ printf "--api-listen=%s:%d" (include "evenkeel.listenHost" .) (int .Values.ports.api) | quote }}
- --api-name={{ $name }}
- --api-name={{ $name }}.{{ .Release.Namespace }}
- --api-name={{ $name }}.{{ .Release.Namespace }}.svc
{{- range .Values.api.names }}
- {{ printf "--api-name=%s" . | quote }}
{{- end }}
{{- if .Values.api.tokenSecretName }}
- --token-file=/etc/evenkeel/api-tokens/tokens.csv
{{- end }}
{{- if eq .Values.api.store "etcd" }}
- {{ printf "--store=etcd://%s%s" (join "," .Values.api.etcd.endpoints) .Values.api.etcd.prefix | quote }}
{{- if .Values.api.etcd.tls.secretName }}
- --etcd-ca=/etc/evenkeel/etcd-tls/ca.crt
{{- if .Values.api.etcd.tls.clientCertificate }}
- --etcd-certificate=/etc/evenkeel/etcd-tls/tls.crt
- --etcd-key=/etc/evenkeel/etcd-tls/tls.key
{{- end }}
{{- if .Values.api.etcd.tls.serverName }}
- {{ printf "--etcd-server-name=%s" .Values.api.etcd.tls.serverName | quote }}
{{- end }}
{{- end }}
{{- if .Values.api.etcd.user }}
- {{ printf "--etcd-user=%s" .Values.api.etcd.user | quote }}
- --etcd-password-file=/etc/evenkeel/etcd-password/password
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
