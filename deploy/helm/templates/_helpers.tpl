{{- define "carillon.name" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains "carillon" .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-carillon" (.Release.Name | trunc 43 | trimSuffix "-") }}
{{- end }}
{{- end }}

{{- define "carillon.labels" -}}
app.kubernetes.io/name: carillon
app.kubernetes.io/part-of: carillon
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "carillon.worker" -}}
app.kubernetes.io/component: worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "carillon.topics" -}}
app.kubernetes.io/component: topics
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The port that the worker listens on. */}}
{{- define "carillon.port" -}}
{{- regexFind "[0-9]+$" .Values.config.http.listen | required "config.http.listen must be address:port" }}
{{- end }}

{{- define "carillon.dns" -}}
- to:
    - namespaceSelector: {}
      podSelector:
        matchLabels:
          k8s-app: kube-dns
  ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}

{{/* The restricted profile. */}}
{{- define "carillon.restricted" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
