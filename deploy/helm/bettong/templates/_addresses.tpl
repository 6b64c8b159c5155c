{{/* Addresses of the parts that others connect to. */}}
{{- define "bettong.kafka" -}}
{{- if .Values.kafka.bundled.enabled -}}
{{ include "bettong.fullname" . }}-kafka:9092
{{- else -}}
{{ .Values.kafka.bootstrapServers }}
{{- end -}}
{{- end -}}

{{- define "bettong.redis" -}}
{{- if .Values.redis.bundled.enabled -}}
redis://{{ include "bettong.fullname" . }}-redis:6379/0
{{- else -}}
{{ .Values.redis.url }}
{{- end -}}
{{- end -}}

{{- define "bettong.sparkMaster" -}}
spark://{{ include "bettong.fullname" . }}-master:7077
{{- end -}}

{{/* Variables of Spark's processes: (dict "root"). */}}
{{- define "bettong.sparkEnv" -}}
- {name: SPARK_LOCAL_IP, value: $(POD_IP)}
- {name: SPARK_CONF_DIR, value: /etc/bettong/spark}
- {name: SPARK_LOCAL_DIRS, value: /tmp/spark}
- {name: SPARK_NO_DAEMONIZE, value: "true"}
{{- end -}}
