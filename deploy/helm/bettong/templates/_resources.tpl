{{/* CPUs and memory: the only template in which the class of a pod is decided. */}}

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

{{/* MiB of a quantity, which the schema holds to Mi, Gi and Ti. */}}
{{- define "bettong.mebibytes" -}}
{{- if hasSuffix "Ti" . -}}{{ mul 1048576 (trimSuffix "Ti" . | int) }}{{- else if hasSuffix "Gi" . -}}{{ mul 1024 (trimSuffix "Gi" . | int) }}{{- else -}}{{ trimSuffix "Mi" . | int }}{{- end -}}
{{- end -}}

{{/*
Resources of a container: (dict "root" "name" "of" "volume"), "of" being {cpu, memory, burst: {cpu, memory}}, "volume" the
persistence of its data. "passing" is true for pods that end by themselves: they need no CPUs of their own and may have a
part of one.
*/}}
{{- define "bettong.resources" -}}
{{- $qos := .root.Values.qos -}}
{{- $disk := .root.Values.ephemeralStorage -}}
{{- $requested := include "bettong.disk" (list $disk.request dict) -}}
{{- $allowed := include "bettong.disk" (list $disk.limit .volume) -}}
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
requests: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}{{ $requested }}}
limits: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}{{ $allowed }}}
{{- else -}}
{{- include "bettong.burstChecks" . -}}
requests: {cpu: {{ .of.cpu | quote }}, memory: {{ .of.memory }}{{ $requested }}}
limits: { {{- with $burst.cpu }}cpu: {{ . | quote }}, {{ end }}memory: {{ default .of.memory $burst.memory }}{{ $allowed }}}
{{- end -}}
{{- end -}}

{{/* A limit below its request is refused by the API server, after the install has begun: (dict "name" "of"). */}}
{{- define "bettong.burstChecks" -}}
{{- with .of.burst -}}
{{- if and .cpu (lt (include "bettong.cpu" .cpu | float64) (include "bettong.cpu" $.of.cpu | float64)) -}}
{{- fail (printf "%s.resources.burst.cpu: %v is below resources.cpu (%v): a limit is at least the request" $.name .cpu $.of.cpu) -}}
{{- end -}}
{{- if and .memory (lt (include "bettong.mebibytes" .memory | int64) (include "bettong.mebibytes" $.of.memory | int64)) -}}
{{- fail (printf "%s.resources.burst.memory: %s is below resources.memory (%s): a limit is at least the request" $.name .memory $.of.memory) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The node's disk: (list quantity volume). A volume that is not kept lies there too, with what its size says. */}}
{{- define "bettong.disk" -}}
{{- $volume := default dict (index . 1) -}}
{{- with index . 0 -}}
{{- $kept := or (empty $volume) (default false $volume.enabled) -}}
, ephemeral-storage: {{ add (include "bettong.mebibytes" .) (ternary 0 (include "bettong.mebibytes" (default "0Mi" $volume.size)) $kept) }}Mi
{{- end -}}
{{- end -}}

{{/* Threads of native libraries, so many a process: (list threads). */}}
{{- define "bettong.threadEnv" -}}
{{- range list "OMP_NUM_THREADS" "OPENBLAS_NUM_THREADS" "MKL_NUM_THREADS" "NUMBA_NUM_THREADS" }}
- {name: {{ . }}, value: {{ $ | quote }}}
{{- end }}
{{- end -}}
