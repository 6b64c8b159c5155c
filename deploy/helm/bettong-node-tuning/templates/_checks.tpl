{{/* What two settings ask of each other, which a schema cannot say in words: as the tuner itself asks (TunerSettings), which
would end in every pod, again and again. */}}
{{- define "tuning.checks" -}}
{{- $s := .Values.settings -}}
{{- range list "irq_affinity" "rps" "workqueues" -}}
{{- if and (get $s .) (not $s.housekeeping_cpus) -}}
{{- fail (printf "settings.%s needs settings.housekeeping_cpus: those that the kubelet reserves (reservedSystemCPUs), \"0-1\"" .) -}}
{{- end -}}
{{- end -}}
{{- if ne (kindIs "invalid" $s.fifo_priority) (empty $s.fifo_threads) -}}
{{- fail "settings.fifo_priority and settings.fifo_threads: give both, or none" -}}
{{- end -}}
{{- range splitList "," $s.housekeeping_cpus -}}
{{- $ends := splitList "-" . -}}
{{- if or (gt (int (first $ends)) (int (last $ends))) (gt (int (last $ends)) 8191) -}}
{{- fail (printf "settings.housekeeping_cpus: %q is not a range of CPUs: expected first-last, below 8192" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
