{{/* Certificates and tokens of the pods that serve gRPC. Files of a mounted Secret follow it; the services read them again. */}}

{{/* The Secret of the certificate: the one that is given, or the one that cert-manager fills; empty without TLS. */}}
{{- define "bettong.tlsSecret" -}}
{{- default (ternary (printf "%s-tls" (include "bettong.fullname" .)) "" (not (empty .Values.tls.certManager.issuerRef.name))) .Values.tls.secretName -}}
{{- end -}}

{{/* (list root port): the port on which probes, which speak no TLS, learn of health and nothing else. */}}
{{- define "bettong.securityEnv" -}}
{{- $v := (index . 0).Values -}}
{{- if include "bettong.tlsSecret" (index . 0) }}
- {name: BETTONG_HEALTH_LISTEN, value: "0.0.0.0:{{ index . 1 }}"}
- {name: BETTONG_TLS_CERTIFICATE, value: /etc/bettong/tls/tls.crt}
- {name: BETTONG_TLS_KEY, value: /etc/bettong/tls/tls.key}
{{- if $v.tls.clients }}
- {name: BETTONG_TLS_CLIENTS, value: /etc/bettong/tls/ca.crt}
{{- end }}
{{- end }}
{{- if $v.tokens.secretName }}
- {name: BETTONG_TOKENS, value: /etc/bettong/tokens/tokens.toml}
{{- end }}
{{- end -}}

{{- define "bettong.securityMounts" -}}
{{- if include "bettong.tlsSecret" . }}
- {name: tls, mountPath: /etc/bettong/tls, readOnly: true}
{{- end }}
{{- if .Values.tokens.secretName }}
- {name: tokens, mountPath: /etc/bettong/tokens, readOnly: true}
{{- end }}
{{- end -}}

{{- define "bettong.securityVolumes" -}}
{{- with include "bettong.tlsSecret" . }}
- {name: tls, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.tokens.secretName }}
- {name: tokens, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* Not empty when there is a `helm test`: services that ask clients who they are need test.clientSecret. */}}
{{- define "bettong.hasTest" -}}
{{- $v := .Values -}}
{{- if or $v.test.clientSecret (not (or $v.tls.clients $v.tokens.secretName)) -}}yes{{- end -}}
{{- end -}}

{{/* Of the pod of `helm test`: its own Secret, or the authority of the services' certificate alone. */}}
{{- define "bettong.clientVolume" -}}
{{- with include "bettong.tlsSecret" . }}
- name: client
  {{- if $.Values.test.clientSecret }}
  secret: {secretName: {{ $.Values.test.clientSecret | quote }}, defaultMode: 0440}
  {{- else }}
  secret: {secretName: {{ . | quote }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The variables of a client in the release itself: the pod of `helm test`. */}}
{{- define "bettong.clientEnv" -}}
{{- $v := .Values -}}
{{- if include "bettong.tlsSecret" . }}
- {name: BETTONG_CLIENT_CA, value: /etc/bettong/client/ca.crt}
{{- if $v.tls.clients }}
- {name: BETTONG_CLIENT_CERTIFICATE, value: /etc/bettong/client/tls.crt}
- {name: BETTONG_CLIENT_KEY, value: /etc/bettong/client/tls.key}
{{- end }}
{{- if $v.tokens.secretName }}
- {name: BETTONG_CLIENT_TOKEN_FILE, value: /etc/bettong/client/token}
{{- end }}
{{- end }}
{{- end -}}
