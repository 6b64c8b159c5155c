{{/* What values must agree on, beyond the schema. Each message names the values and the remedy. */}}
{{- define "bettong.checks" -}}
{{- $v := .Values -}}
{{- if eq (empty $v.application.source) (empty $v.application.path) -}}
{{- fail "application: give exactly one of source (text of a Python file) and path (a file in the image)" -}}
{{- end -}}
{{- if eq (empty $v.kafka.bootstrapServers) (not $v.kafka.bundled.enabled) -}}
{{- fail "kafka: give bootstrapServers of a Kafka that is there, or set bundled.enabled to try out; exactly one of them" -}}
{{- end -}}
{{- $redis := 0 -}}
{{- range list $v.redis.url $v.redis.urlSecret.name $v.redis.bundled.enabled -}}
{{- if . -}}{{- $redis = add1 $redis -}}{{- end -}}
{{- end -}}
{{- if ne (int $redis) 1 -}}
{{- fail "redis: give url or urlSecret.name of a Redis that is there, or set bundled.enabled to try out; exactly one of them" -}}
{{- end -}}
{{- if and $v.qos.pin.enabled (ne $v.qos.mode "guaranteed") -}}
{{- fail "qos.pin.enabled: only pods of qos.mode guaranteed get CPUs of their own; set it too" -}}
{{- end -}}
{{- range $name := list "sender" "worker" -}}
{{- $of := index $v $name -}}
{{- if and $of.autoscaling.enabled (not (kindIs "invalid" $of.replicas)) -}}
{{- fail (printf "%s.replicas and %s.autoscaling.enabled exclude each other: leave replicas null" $name $name) -}}
{{- end -}}
{{- if and $of.autoscaling.enabled (lt (int $of.autoscaling.maxReplicas) (int $of.autoscaling.minReplicas)) -}}
{{- fail (printf "%s.autoscaling: maxReplicas is below minReplicas" $name) -}}
{{- end -}}
{{- end -}}
{{- with $v.ephemeralStorage -}}
{{- if and .request .limit -}}
{{- if lt (include "bettong.mebibytes" .limit | int64) (include "bettong.mebibytes" .request | int64) -}}
{{- fail (printf "ephemeralStorage.request: %s is above the limit (%s)" .request .limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "bettong.slotChecks" . -}}
{{- include "bettong.secretChecks" . -}}
{{- include "bettong.stopChecks" . -}}
{{- include "bettong.memoryChecks" . -}}
{{- include "bettong.metricsChecks" . -}}
{{- include "bettong.storesChecks" . -}}
{{- $tls := include "bettong.tlsSecret" . -}}
{{- if and $v.tokens.secretName (not $tls) -}}
{{- fail "tokens.secretName: without tls.secretName tokens would come in plain text; give both" -}}
{{- end -}}
{{- if and $v.console.allowChanges (not (include "bettong.consoleIsOpen" .)) -}}
{{- fail "console.allowChanges: only people with a token may change something; give console.enabled, tls.secretName and tokens.secretName" -}}
{{- end -}}
{{- if and $v.console.allowChanges (eq (include "bettong.serviceAccount" .) "default") -}}
{{- fail "serviceAccount: console.allowChanges would let every pod of the namespace scale workers that has the account \"default\"; give serviceAccount.name of an account of this release alone, or serviceAccount.create" -}}
{{- end -}}
{{- if and $v.tls.clients (not $tls) -}}
{{- fail "tls.clients: clients show certificates by TLS alone; give tls.secretName" -}}
{{- end -}}
{{- $test := 0 -}}
{{- range list $v.test.source $v.test.message $v.test.sink -}}{{- if . -}}{{- $test = add1 $test -}}{{- end -}}{{- end -}}
{{- if not (has (int $test) (list 0 3)) -}}
{{- fail "test: give all of source, message and sink, or none" -}}
{{- end -}}
{{- end -}}

{{/* A schedule folds while it has a slot. */}}
{{- define "bettong.slotChecks" -}}
{{- $worker := .Values.worker -}}
{{- $count := $worker.initialReplicas -}}
{{- if $worker.autoscaling.enabled -}}{{- $count = $worker.autoscaling.minReplicas -}}{{- end -}}
{{- if $worker.keda.enabled -}}{{- $count = $worker.keda.minReplicas -}}{{- end -}}
{{- if not (kindIs "invalid" $worker.replicas) -}}{{- $count = $worker.replicas -}}{{- end -}}
{{- $slots := include "bettong.slots" . | int -}}
{{- $total := mul $count $slots -}}
{{- if lt (int $total) 1 -}}
{{- fail (printf "worker: %d workers of %d slots are %d slots; the schedule needs at least 1: give more workers" (int $count) $slots (int $total)) -}}
{{- end -}}
{{- $threads := include "bettong.threads" (dict "root" . "of" $worker.resources) | int -}}
{{- if and (eq .Values.qos.mode "guaranteed") (gt $slots $threads) -}}
{{- fail (printf "worker.slots: %d slots cannot share %d CPUs under qos.mode guaranteed" $slots $threads) -}}
{{- end -}}
{{- $partitions := include "bettong.partitions" . | int -}}
{{- $counts := dict "replicas" $worker.replicas -}}
{{- if $worker.autoscaling.enabled -}}
{{- $_ := set $counts "autoscaling.maxReplicas" $worker.autoscaling.maxReplicas -}}
{{- else if not $worker.keda.enabled -}}
{{- $_ := set $counts "initialReplicas" $worker.initialReplicas -}}
{{- end -}}
{{- range $name, $count := $counts -}}
{{- if gt (int $count) $partitions -}}
{{- fail (printf "worker.%s: %d workers for %d partitions (settings.partitions): more find nothing to do" $name (int $count) $partitions) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of each topic; each is one worker's at a time, so that there is work for so many workers at most. */}}
{{- define "bettong.partitions" -}}
{{- default 16 .Values.settings.partitions | int -}}
{{- end -}}

{{- define "bettong.slots" -}}
{{- default (include "bettong.threads" (dict "root" . "of" .Values.worker.resources)) .Values.worker.slots -}}
{{- end -}}

{{/* What goes into a ConfigMap must hold no secret. */}}
{{- define "bettong.secretChecks" -}}
{{- $v := .Values -}}
{{- $urls := dict "settings.snapshots" $v.settings.snapshots "driver.checkpoint.url" $v.driver.checkpoint.url -}}
{{- range $key, $value := $v.spark.conf -}}
{{- if regexMatch "(?i)secret|password|token" $key -}}
{{- fail (printf "spark.conf: %s would lie in a ConfigMap, for everyone to read: give secrets by envFrom of worker and driver (AWS_SECRET_ACCESS_KEY), or by a file of a Secret among their volumes" $key) -}}
{{- end -}}
{{- $_ := set $urls (printf "spark.conf: %s" $key) $value -}}
{{- end -}}
{{- range $name, $url := $urls -}}
{{- if regexMatch "//[^/@\\s]*:[^/@\\s]*@" (default "" $url) -}}
{{- fail (printf "%s: a URL with a password would lie in a ConfigMap, for everyone to read: give it by envFrom of worker and driver" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Seconds that a stop takes at most after SIGTERM: see the services' READMEs. */}}
{{- define "bettong.stopChecks" -}}
{{- $v := .Values -}}
{{- range $name, $stop := dict "sender" 25 "receiver" 25 "worker" 10 "topicSender" 25 "driver" 35 -}}
{{- $of := index $v $name -}}
{{- $needs := add $stop (default 0 $of.preStopSeconds) (default 0 $of.drainSeconds) -}}
{{- if gt (int $needs) (int $of.terminationGracePeriodSeconds) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds: %v is too short, a stop takes up to %d s (preStopSeconds or drainSeconds included)" $name $of.terminationGracePeriodSeconds $needs) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Java's heap and what lies beside it must fit into the limit of memory. */}}
{{- define "bettong.memoryChecks" -}}
{{- $v := .Values -}}
{{- $shared := int $v.worker.sharedMemoryMiB -}}
{{- $all := list (list "master" $v.master 128) (list "driver" $v.driver 384) (list "worker" $v.worker (add 512 $shared)) -}}
{{- if $v.kafka.bundled.enabled -}}{{- $all = append $all (list "kafka.bundled" $v.kafka.bundled 256) -}}{{- end -}}
{{- range $all -}}
{{- $of := index . 1 -}}
{{- $limit := $of.resources.memory -}}
{{- if and (eq $v.qos.mode "burstable") $of.resources.burst -}}{{- $limit = default $limit $of.resources.burst.memory -}}{{- end -}}
{{- $has := include "bettong.mebibytes" $limit | int -}}
{{- $needs := add $of.heapMiB (index . 2) | int -}}
{{- if gt $needs $has -}}
{{- fail (printf "%s.resources.memory: %s is too little: heapMiB %v and %d MiB beside it are %d MiB" (index . 0) $limit $of.heapMiB (index . 2) $needs) -}}
{{- end -}}
{{- end -}}
{{- end -}}
