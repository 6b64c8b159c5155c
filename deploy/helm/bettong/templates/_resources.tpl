{{/* CPUs and memory: the one place where the class of a pod is decided. */}}

{{/* CPUs of a quantity (2, "500m", 0.5) as a number. */}}
{{- define "bettong.cpu" -}}
{{- $quantity := toString . -}}
{{- if hasSuffix "m" $quantity -}}{{ divf (trimSuffix "m" $quantity) 1000 }}{{- else -}}{{ $quantity }}{{- end -}}
{{- end -}}

{{/* How many threads a container may keep busy: its CPUs, rounded up. (dict "root" "of") */}}
{{- define "bettong.threads" -}}
{{- $cpu := .of.cpu -}}
{{- if and (eq .root.Values.qos.mode "burstable") .of.burst -}}{{- $cpu = default $cpu .of.burst.cpu -}}{{- end -}}
{{- max 1 (include "bettong.cpu" $cpu | float64 | ceil | int) -}}
{{- end -}}

{{/* MiB of a memory quantity, which the schema holds to Mi and Gi. */}}
{{- define "bettong.mebibytes" -}}
{{- if hasSuffix "Gi" . -}}{{ mul 1024 (trimSuffix "Gi" . | int) }}{{- else -}}{{ trimSuffix "Mi" . | int }}{{- end -}}
{{- end -}}

{{/*
Resources of a container: (dict "root" "name" "of"), "of" being {cpu, memory, burst: {cpu, memory}}. "passing" is
true for pods that end by themselves: they need no CPUs of their own and may have a part of one.
*/}}
{{- define "bettong.resources" -}}
{{- $qos := .root.Values.qos -}}
{{- $burst := default dict .of.burst -}}
{{- if eq $qos.mode "guaranteed" -}}
{{- if not .passing -}}
{{- $cpu := include "bettong.cpu" .of.cpu | float64 -}}
{{- if ne $cpu (floor $cpu) -}}
{{- fail (printf "%s.resources.cpu: %v is no whole number; qos.mode guaranteed gives whole CPUs only" .name .of.cpu) -}}
{{- end -}}
{{- if mod (int $cpu) (int $qos.smtMultiple) -}}
{{- fail (printf "%s.resources.cpu: %v is no multiple of qos.smtMultiple (%v)" .name .of.cpu $qos.smtMultiple) -}}
{{- end -}}
{{- end -}}
requests: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}}
limits: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}}
{{- else -}}
requests: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}}
limits: { {{- with $burst.cpu }}cpu: {{ . | quote }}, {{ end }}memory: {{ default .of.memory $burst.memory }}}
{{- end -}}
{{- end -}}

{{/* Threads of native libraries, so many a process: (list threads). */}}
{{- define "bettong.threadEnv" -}}
{{- range list "OMP_NUM_THREADS" "OPENBLAS_NUM_THREADS" "MKL_NUM_THREADS" "NUMBA_NUM_THREADS" }}
- {name: {{ . }}, value: {{ $ | quote }}}
{{- end }}
{{- end -}}
