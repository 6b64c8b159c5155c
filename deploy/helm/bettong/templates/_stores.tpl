{{/*
How Kafka and Redis are spoken to: by files of mounted Secrets, in every pod of Bettong's own, executors among them. Only
names of files and users are variables.
*/}}

{{- define "bettong.storesSettings" -}}
{{- $kafka := .Values.kafka -}}
{{- if or $kafka.tls.enabled $kafka.sasl.user }}
BETTONG_KAFKA_SECURITY: {{ printf "%s%s" (ternary "sasl_" "" (not (empty $kafka.sasl.user))) (ternary "ssl" "plaintext" $kafka.tls.enabled) }}
{{- end }}
{{- if and $kafka.tls.enabled $kafka.tls.secretName }}
BETTONG_KAFKA_CA: /etc/bettong/kafka-tls/ca.crt
{{- if $kafka.tls.clients }}
BETTONG_KAFKA_CERTIFICATE: /etc/bettong/kafka-tls/tls.crt
BETTONG_KAFKA_KEY: /etc/bettong/kafka-tls/tls.key
{{- end }}
{{- end }}
{{- if $kafka.sasl.user }}
BETTONG_KAFKA_USER: {{ $kafka.sasl.user | quote }}
BETTONG_KAFKA_MECHANISM: {{ $kafka.sasl.mechanism }}
BETTONG_KAFKA_PASSWORD_FILE: /etc/bettong/kafka-sasl/{{ $kafka.sasl.key }}
{{- end }}
{{- with .Values.redis }}
{{- if .tls.secretName }}
BETTONG_REDIS_CA: /etc/bettong/redis-tls/ca.crt
{{- end }}
{{- if .auth.secretName }}
{{- if .auth.user }}
BETTONG_REDIS_USER: {{ .auth.user | quote }}
{{- end }}
BETTONG_REDIS_PASSWORD_FILE: /etc/bettong/redis-auth/{{ .auth.key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Name of volume and Secret of each that is used. */}}
{{- define "bettong.storesSecrets" -}}
{{- $kafka := .Values.kafka -}}
{{- $redis := .Values.redis -}}
{{- $found := dict -}}
{{- if and $kafka.tls.enabled $kafka.tls.secretName -}}{{- $_ := set $found "kafka-tls" $kafka.tls.secretName -}}{{- end -}}
{{- if $kafka.sasl.user -}}{{- $_ := set $found "kafka-sasl" $kafka.sasl.secretName -}}{{- end -}}
{{- if $redis.tls.secretName -}}{{- $_ := set $found "redis-tls" $redis.tls.secretName -}}{{- end -}}
{{- if $redis.auth.secretName -}}{{- $_ := set $found "redis-auth" $redis.auth.secretName -}}{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "bettong.storesMounts" -}}
{{- range $name, $_ := include "bettong.storesSecrets" . | fromJson }}
- {name: {{ $name }}, mountPath: /etc/bettong/{{ $name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "bettong.storesVolumes" -}}
{{- range $name, $secret := include "bettong.storesSecrets" . | fromJson }}
- {name: {{ $name }}, secret: {secretName: {{ $secret | quote }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* Ports of the stores that are there, as text. */}}
{{- define "bettong.kafkaPorts" -}}
{{- $found := list -}}
{{- range splitList "," .Values.kafka.bootstrapServers | uniq -}}
{{- $found = append $found (regexFind "[0-9]+$" .) -}}
{{- end -}}
{{- compact $found | uniq | toJson -}}
{{- end -}}

{{- define "bettong.redisPort" -}}
{{- $redis := .Values.redis -}}
{{- if $redis.urlSecret.name -}}{{ $redis.urlSecret.port }}{{- else -}}
{{ regexFind ":[0-9]+([/?]|$)" $redis.url | trimAll ":/?" | default "6379" }}
{{- end -}}
{{- end -}}

{{- define "bettong.portCheck" -}}
{{- $port := index . 1 | int64 -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "%s: there is no port %s; ports are 1 to 65535" (index . 0) (index . 1)) -}}
{{- end -}}
{{- end -}}

{{- define "bettong.storesChecks" -}}
{{- $v := .Values -}}
{{- $kafka := .Values.kafka -}}
{{- $redis := .Values.redis -}}
{{- if ne (empty $kafka.sasl.user) (empty $kafka.sasl.secretName) -}}
{{- fail "kafka.sasl: give both of user and secretName, or none" -}}
{{- end -}}
{{- if and $kafka.bundled.enabled (or $kafka.sasl.user $kafka.tls.enabled) -}}
{{- fail "kafka.bundled: it speaks plain text and knows no users; kafka.tls and kafka.sasl are for a Kafka that is there" -}}
{{- end -}}
{{- if and (or $kafka.tls.secretName $kafka.tls.clients) (not $kafka.tls.enabled) -}}
{{- fail "kafka.tls: secretName and clients need kafka.tls.enabled" -}}
{{- end -}}
{{- if and $kafka.bundled.enabled (gt (int $v.settings.replication) 1) -}}
{{- fail (printf "settings.replication: %d copies, but kafka.bundled is a single broker" (int $v.settings.replication)) -}}
{{- end -}}
{{- range include "bettong.kafkaPorts" . | fromJsonArray -}}
{{- include "bettong.portCheck" (list "kafka.bootstrapServers" .) -}}
{{- end -}}
{{- include "bettong.portCheck" (list "redis.url" (include "bettong.redisPort" .)) -}}
{{- if and $kafka.tls.clients (not $kafka.tls.secretName) -}}
{{- fail "kafka.tls.clients: give secretName of the Secret that holds the certificate" -}}
{{- end -}}
{{- if and $redis.tls.secretName (not $redis.urlSecret.name) (not (hasPrefix "rediss://" $redis.url)) -}}
{{- fail "redis.tls.secretName: the URL of a Redis that speaks TLS begins with rediss://" -}}
{{- end -}}
{{- if and $redis.auth.user (not $redis.auth.secretName) -}}
{{- fail "redis.auth.user: give secretName of the Secret that holds its password" -}}
{{- end -}}
{{- if and $redis.auth.secretName (or $redis.urlSecret.name $redis.bundled.enabled) -}}
{{- fail "redis.auth: it goes with redis.url; a URL of urlSecret holds user and password itself, and bundled knows none" -}}
{{- end -}}
{{- end -}}
