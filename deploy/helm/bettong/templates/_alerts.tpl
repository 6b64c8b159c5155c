{{/* Alert rules: files/alerts.yaml, with the release and the thresholds of the values put in. */}}

{{/* The rules that are not left out. Their labels name the release, also where an expression adds up over its series. */}}
{{- define "bettong.alertRules" -}}
{{- $text := .Files.Get "files/alerts.yaml" -}}
{{- range $name, $value := include "bettong.alertWords" . | fromYaml -}}
{{- $text = replace (printf "${%s}" $name) $value $text -}}
{{- end -}}
{{- $release := dict "namespace" .Release.Namespace "app_kubernetes_io_instance" .Release.Name -}}
{{- $rules := list -}}
{{- range fromYamlArray $text -}}
{{- if not (has .alert $.Values.alerts.without) -}}
{{- $_ := set . "labels" (merge .labels $release) -}}
{{- $_ := set .annotations "runbook" (printf "docs/operations.md, Alerts: %s" .alert) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{/* What is put in, by name, as texts. The labels are those that the ServiceMonitor gives to each series. */}}
{{- define "bettong.alertWords" -}}
{{- $of := .Values.alerts.thresholds -}}
{{- $bufferBytes := default 268435456 .Values.settings.sender_buffer_bytes_max | float64 | mulf $of.bufferShare | floor -}}
{{- range $name, $value := merge (dict "bufferBytes" $bufferBytes) $of }}
{{ $name }}: {{ include "bettong.number" $value | quote }}
{{- end }}
release: {{ printf "namespace=%q,app_kubernetes_io_instance=%q" .Release.Namespace .Release.Name | quote }}
{{- end -}}
