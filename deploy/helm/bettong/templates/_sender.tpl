{{/* The pod template of a sender: (dict "root" "of" "name" "component" "topics"). */}}
{{- define "bettong.senderPod" -}}
metadata:
  {{- include "bettong.podMeta" (merge (dict "sums" (list "settings" "application")) .) | nindent 2 }}
spec:
  {{- include "bettong.podSpec" . | nindent 2 }}
  containers:
    - name: sender
      {{- include "bettong.container" . | nindent 6 }}
      args: [bettong, sender]
      ports:
        - {name: grpc, containerPort: 7100}
        {{- include "bettong.metricsPort" .root | nindent 8 }}
      env: {{- include "bettong.variables" (dict "own" (include "bettong.senderEnv" .) "of" .of) | nindent 8 }}
      envFrom: {{- include "bettong.envFrom" . | nindent 8 }}
      {{- include "bettong.grpcProbes" (ternary 7101 7100 (not (empty (include "bettong.tlsSecret" .root)))) | nindent 6 }}
      volumeMounts:
        {{- include "bettong.volumeMounts" . | nindent 8 }}
        {{- include "bettong.securityMounts" .root | nindent 8 }}
  volumes:
    {{- include "bettong.volumes" . | nindent 4 }}
    {{- include "bettong.securityVolumes" .root | nindent 4 }}
{{- end -}}

{{- define "bettong.senderEnv" -}}
{{- include "bettong.env" (merge (dict "threads" (include "bettong.threads" (dict "root" .root "of" .of.resources))) .) }}
- {name: BETTONG_SENDER_LISTEN, value: "0.0.0.0:7100"}
{{- include "bettong.securityEnv" (list .root 7101) }}
{{ include "bettong.connectionAgeEnv" .of }}
{{ include "bettong.drainEnv" .of }}
{{ include "bettong.metricsEnv" .root }}
- {name: BETTONG_SENDER_TOPICS, value: {{ .topics | quote }}}
{{- end -}}

{{/*
Ready: takes calls. Alive: the event loop answers, also while Kafka is waited for, which no new start would mend.
At the start the application is loaded, which may take a while.
*/}}
{{- define "bettong.grpcProbes" -}}
startupProbe: {grpc: {port: {{ . }}, service: alive}, periodSeconds: 2, failureThreshold: 90}
livenessProbe: {grpc: {port: {{ . }}, service: alive}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
readinessProbe: {grpc: {port: {{ . }}}, periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2}
{{- end -}}

{{/* A ClusterIP service, and a headless one for clients that balance themselves: (dict "root" "component" "of" "port"). */}}
{{- define "bettong.grpcServices" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "bettong.fullname" .root }}-{{ .component }}
  labels: {{- include "bettong.labels" (list .root .component) | nindent 4 }}
  {{- with .of.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .of.service.type }}
  selector: {{- include "bettong.selector" (list .root .component) | nindent 4 }}
  ports:
    - {name: grpc, port: {{ .of.service.port }}, targetPort: grpc, appProtocol: grpc}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "bettong.fullname" .root }}-{{ .component }}-headless
  labels: {{- include "bettong.labels" (list .root .component) | nindent 4 }}
spec:
  clusterIP: None
  selector: {{- include "bettong.selector" (list .root .component) | nindent 4 }}
  ports:
    - {name: grpc, port: {{ .port }}, targetPort: grpc, appProtocol: grpc}
    {{- include "bettong.metricsServicePort" .root | nindent 4 }}
{{- end -}}

{{/* (of): how long it serves on once it was told to stop. */}}
{{- define "bettong.drainEnv" -}}
- {name: BETTONG_DRAIN_MS, value: {{ mul 1000 (default 0 .drainSeconds) | quote }}}
{{- end -}}

{{/* (of): grpc-go's MAX_CONNECTION_AGE, by the setting. */}}
{{- define "bettong.connectionAgeEnv" -}}
{{- with .maxConnectionAgeSeconds -}}
- {name: BETTONG_CONNECTION_AGE_MAX_S, value: {{ . | quote }}}
{{- end -}}
{{- end -}}
