{{/* What all pods and containers share. */}}

{{- define "bettong.podMeta" -}}
{{/* (dict "root" "component" "of" "sums" list of templates whose text restarts the pod) */}}
{{- $root := .root -}}
labels:
  {{- include "bettong.labels" (list $root .component) | nindent 2 }}
  {{- with .of.labels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  {{- range .sums }}
  checksum/{{ . }}: {{ include (print $root.Template.BasePath "/" . ".yaml") $root | sha256sum }}
  {{- end }}
  {{- with .of.annotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{/* Fields of a pod's spec: (dict "root" "component" "of" "user" "pinned" "at"). "at": whose nodes it goes to, by default its own. */}}
{{- define "bettong.podSpec" -}}
{{- $root := .root -}}
{{- $of := default dict .of -}}
{{- $user := default $root.Values.podSecurity.runAsUser .user -}}
{{- $at := default $of .at -}}
{{- $pinned := and (default false .pinned) $root.Values.qos.pin.enabled -}}
serviceAccountName: {{ include "bettong.serviceAccount" $root | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  fsGroup: {{ ternary $user $root.Values.podSecurity.fsGroup (not (empty .user)) }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with $of.terminationGracePeriodSeconds }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
{{- with default (ternary (include "bettong.priorityClass" $root) "" $root.Values.priorityClass.create) $of.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with ternary (merge (dict) (default dict $at.nodeSelector) $root.Values.qos.pin.nodeSelector) $at.nodeSelector $pinned }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with ternary (concat (default list $at.tolerations) $root.Values.qos.pin.tolerations) $at.tolerations $pinned }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $of.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "bettong.selector" (list $root .component) | nindent 8 }}
{{- end -}}

{{/* Fields of a container: (dict "root" "name" "of" "image" "volume" "passing"). What is no service of its own runs in the sender's image. */}}
{{- define "bettong.container" -}}
{{- $service := get (dict "receiver" "receiver" "console" "console" "master" "processor" "worker" "processor" "driver" "processor") .name | default "sender" -}}
image: {{ default (include "bettong.image" (list .root $service)) .image | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- include "bettong.resources" (dict "root" .root "name" .name "of" .of.resources "volume" (default .of.persistence .volume) "passing" .passing) | nindent 2 }}
{{- end -}}

{{/*
Variables of a container: the chart's own, each replaced where the user gives one of its name, and the user's others.
Twice the same name is refused by helm 4's server-side apply. (dict "own" text "of")
*/}}
{{- define "bettong.variables" -}}
{{- $given := dict -}}
{{- $seen := dict -}}
{{- range .of.env -}}{{- $_ := set $given .name . -}}{{- end -}}
{{- $found := list -}}
{{- range concat (fromYamlArray .own) (default list .of.env) -}}
{{- if not (hasKey $seen .name) -}}
{{- $found = append $found (default . (get $given .name)) -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* The chart's variables of a container of Bettong: (dict "root" "threads"). */}}
{{- define "bettong.env" -}}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: HOME, value: /tmp}
- {name: NUMBA_CACHE_DIR, value: /tmp/numba}
{{- include "bettong.threadEnv" .threads }}
{{- with .root.Values.redis.urlSecret }}{{ if .name }}
- {name: BETTONG_REDIS, valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}}}
{{- end }}{{ end }}
{{- end -}}

{{/* The application's file in a pod. */}}
{{- define "bettong.applicationPath" -}}
{{- ternary "/etc/bettong/application/application.py" .Values.application.path (not (empty .Values.application.source)) -}}
{{- end -}}

{{- define "bettong.envFrom" -}}
- configMapRef: {name: {{ include "bettong.fullname" .root }}-settings}
{{- with .of.envFrom }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bettong.volumeMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.application.source }}
- {name: application, mountPath: /etc/bettong/application, readOnly: true}
{{- end }}
{{- if .root.Values.connectionsSecret }}
- {name: connections, mountPath: /etc/bettong/connections, readOnly: true}
{{- end }}
{{- include "bettong.storesMounts" .root }}
{{- with .of.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bettong.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- if .root.Values.application.source }}
- {name: application, configMap: {name: {{ include "bettong.fullname" .root }}-application}}
{{- end }}
{{- with .root.Values.connectionsSecret }}
- {name: connections, secret: {secretName: {{ . | quote }}}}
{{- end }}
{{- include "bettong.storesVolumes" .root }}
{{- with .of.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A claim that a StatefulSet makes: (dict "name" "of"). */}}
{{- define "bettong.claim" -}}
- metadata: {name: {{ .name }}}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .of.storageClassName }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources: {requests: {storage: {{ .of.size }}}}
{{- end -}}

{{/* A count that is rendered only when it is meant to be: (dict "of"); with "root", 0 while the application is repartitioned. */}}
{{- define "bettong.replicas" -}}
{{- if not (kindIs "invalid" .of.replicas) }}
replicas: {{ if .root }}{{ include "bettong.countOr0" (list .root .of.replicas) }}{{ else }}{{ .of.replicas }}{{ end }}
{{- end }}
{{- end -}}

{{/* A count of what must not run while the application is repartitioned: (list root count). */}}
{{- define "bettong.countOr0" -}}
{{- ternary (index . 1) 0 (empty (index . 0).Values.repartition.arguments) -}}
{{- end -}}

{{/* Says that values fix a count, so that `bettong k8s scale` does not set what the next upgrade undoes: (dict "of"). */}}
{{- define "bettong.fixed" -}}
{{- if not (kindIs "invalid" .of.replicas) }}
annotations: {bettong/replicas: values}
{{- end }}
{{- end -}}
