{{/* Live metrics for Prometheus: the port is the same in every pod. */}}

{{- define "bettong.metricsPort" -}}
{{- if .Values.metrics.enabled -}}
- {name: metrics, containerPort: 7300}
{{- end -}}
{{- end -}}

{{- define "bettong.metricsEnv" -}}
{{- if .Values.metrics.enabled -}}
- {name: BETTONG_METRICS_LISTEN, value: "0.0.0.0:7300"}
{{- end -}}
{{- end -}}

{{/* Of the headless services alone: a pod behind two services would be read twice. */}}
{{- define "bettong.metricsServicePort" -}}
{{- if .Values.metrics.enabled -}}
- {name: metrics, port: 7300, targetPort: metrics, appProtocol: http}
{{- end -}}
{{- end -}}

{{- define "bettong.metricsChecks" -}}
{{- $v := .Values -}}
{{- if and $v.serviceMonitor.enabled (not $v.metrics.enabled) -}}
{{- fail "serviceMonitor.enabled: there is nothing to read without metrics.enabled; set it too" -}}
{{- end -}}
{{- if and $v.alerts.enabled (not $v.serviceMonitor.enabled) -}}
{{- fail "alerts.enabled: their rules select by labels that the ServiceMonitor gives; set serviceMonitor.enabled too" -}}
{{- end -}}
{{- if and $v.dashboards.enabled (not $v.metrics.enabled) -}}
{{- fail "dashboards.enabled: there is nothing to show without metrics.enabled; set it too" -}}
{{- end -}}
{{- with $v.serviceMonitor -}}
{{- if and .enabled (gt (include "bettong.milliseconds" .scrapeTimeout | int64) (include "bettong.milliseconds" .interval | int64)) -}}
{{- fail (printf "serviceMonitor.scrapeTimeout: %s is above the interval (%s), which Prometheus refuses" .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- $keda := $v.worker.keda -}}
{{- if $keda.enabled -}}
{{- if not $v.metrics.enabled -}}
{{- fail "worker.keda.enabled: KEDA asks the driver for its lag; set metrics.enabled too" -}}
{{- end -}}
{{- if $v.worker.autoscaling.enabled -}}
{{- fail "worker.keda.enabled and worker.autoscaling.enabled exclude each other: KEDA makes an autoscaler of its own" -}}
{{- end -}}
{{- if not (kindIs "invalid" $v.worker.replicas) -}}
{{- fail "worker.replicas and worker.keda.enabled exclude each other: leave replicas null" -}}
{{- end -}}
{{- $most := include "bettong.kedaMost" . | int -}}
{{- if lt $most (int $keda.minReplicas) -}}
{{- fail (printf "worker.keda.minReplicas: %d workers, but %d are the most (maxReplicas, and settings.partitions)" (int $keda.minReplicas) $most) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bettong.kedaMost" -}}
{{- min (int .Values.worker.keda.maxReplicas) (include "bettong.partitions" . | int) -}}
{{- end -}}

{{/* Of a time of the Prometheus Operator, which the schema holds to ms, s and m. */}}
{{- define "bettong.milliseconds" -}}
{{- $count := regexFind "^[0-9]+" . | int64 -}}
{{- if hasSuffix "ms" . -}}{{ $count }}{{- else if hasSuffix "s" . -}}{{ mul $count 1000 }}{{- else -}}{{ mul $count 60000 }}{{- end -}}
{{- end -}}
