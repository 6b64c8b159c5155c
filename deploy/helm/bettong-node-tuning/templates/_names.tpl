{{/* Names and labels, and what the settings ask of the pod. */}}
{{- define "tuning.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tuning.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tuning.labels" -}}
{{ include "tuning.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tuning.serviceAccount" -}}
{{- ternary (default (include "tuning.fullname" .) .Values.serviceAccount.name) (default "default" .Values.serviceAccount.name) .Values.serviceAccount.create -}}
{{- end -}}

{{- define "tuning.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Not empty when values are written to the node. */}}
{{- define "tuning.writes" -}}
{{- if has .Values.mode (list "apply" "revert") }}yes{{ end -}}
{{- end -}}

{{/* Not empty when sysctls of net are among the wanted, or may be in the journal that a revert restores from: they belong to a
network namespace, and /host/proc/sys/net is that of the pod. */}}
{{- define "tuning.hostNetwork" -}}
{{- if eq .Values.mode "revert" }}yes{{ end -}}
{{- range $name, $value := .Values.settings.sysctls }}{{ if hasPrefix "net." $name }}yes{{ end }}{{ end -}}
{{- end -}}

{{/* The same of threads and the PID namespace, by whose numbers they are scheduled. */}}
{{- define "tuning.hostPID" -}}
{{- if or (eq .Values.mode "revert") .Values.settings.fifo_threads }}yes{{ end -}}
{{- end -}}
