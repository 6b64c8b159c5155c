{{/* Live figures for Prometheus: the port is the same in every pod. */}}

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
{{- fail (printf "worker.keda.minReplicas: %d workers, but %d are the most (maxReplicas, and what settings.partitions fill)" (int $keda.minReplicas) $most) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The most workers that find a partition for each of their slots. */}}
{{- define "bettong.kedaMost" -}}
{{- $slots := include "bettong.slots" . | int -}}
{{- $partitions := default 16 .Values.settings.partitions | int -}}
{{- min (int .Values.worker.keda.maxReplicas) (div (add $partitions (sub $slots 1)) $slots) -}}
{{- end -}}
