{{/* Names and labels. */}}

{{- define "evenkeel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 characters, so that the suffixes of resources and pods fit in. */}}
{{- define "evenkeel.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "evenkeel.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "evenkeel.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "evenkeel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "evenkeel.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- end -}}

{{- define "evenkeel.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "evenkeel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "evenkeel.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "evenkeel.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "evenkeel.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "evenkeel.adminSecret" -}}
{{- default (printf "%s-admin" (include "evenkeel.fullname" .)) .Values.admin.existingSecret -}}
{{- end -}}

{{- define "evenkeel.objectsConfigMap" -}}
{{- default (printf "%s-objects" (include "evenkeel.fullname" .)) .Values.objects.existingConfigMap -}}
{{- end -}}
