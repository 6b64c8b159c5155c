{{/* Names, labels and numbers. */}}
{{- define "bettong.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What a selector selects: (list root component). It never changes in the life of a release. */}}
{{- define "bettong.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* Labels of every object: (list root component). */}}
{{- define "bettong.labels" -}}
{{- $root := index . 0 -}}
{{ include "bettong.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Of the whole cluster, so that its name holds the namespace: releases of one name may be in several. */}}
{{- define "bettong.priorityClass" -}}
{{- printf "%s-%s" (include "bettong.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "bettong.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "bettong.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The image of a service: (list root service). */}}
{{- define "bettong.image" -}}
{{- $root := index . 0 -}}
{{- $image := $root.Values.image -}}
{{- default (printf "%s/%s:%s" $image.repository (index . 1) (default $root.Chart.AppVersion $image.tag)) (get $image (index . 1)) -}}
{{- end -}}

{{/* A number of the values as text: whole ones without an exponent, which durations of Prometheus do not take. */}}
{{- define "bettong.number" -}}
{{- if and (kindIs "float64" .) (eq (toString (floor .)) (toString .)) -}}{{ int64 . }}{{- else -}}{{ toString . }}{{- end -}}
{{- end -}}
