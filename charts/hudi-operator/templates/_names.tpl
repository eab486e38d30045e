{{- define "hudi-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "hudi-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "hudi-operator.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hudi-operator.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hudi-operator.etcd" -}}
{{ include "hudi-operator.fullname" . }}-etcd
{{- end }}

{{- define "hudi-operator.serviceAccount" -}}
{{- default (include "hudi-operator.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{/* Labels that select a component's pods: (list . "operator") */}}
{{- define "hudi-operator.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "hudi-operator.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* All labels of an object of a component: (list . "operator") */}}
{{- define "hudi-operator.labels" -}}
{{- $root := index . 0 -}}
{{ include "hudi-operator.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "hudi-operator.image" -}}
{{ .repository }}:{{ .tag | default "dev" }}
{{- end }}

{{/* Endpoints of etcd, as JSON: each member by its own name, so that a client can switch to another one. */}}
{{- define "hudi-operator.endpoints" -}}
{{- if .Values.etcd.enabled }}
{{- $name := include "hudi-operator.etcd" . }}
{{- $endpoints := list }}
{{- range $i := until (int .Values.etcd.members) }}
{{- $endpoints = append $endpoints (printf "https://%s-%d.%s.%s.svc:2379" $name $i $name $.Release.Namespace) }}
{{- end }}
{{- toJson $endpoints }}
{{- else }}
{{- toJson .Values.externalEtcd.endpoints }}
{{- end }}
{{- end }}

{{/* Secret with an identity of the chart's etcd: (list . "server") */}}
{{- define "hudi-operator.etcdSecret" -}}
{{- $root := index . 0 -}}
{{- $given := get $root.Values.etcd.tls.existingSecrets (index . 1) -}}
{{- default (printf "%s-%s" (include "hudi-operator.etcd" $root) (index . 1)) $given }}
{{- end }}

{{/* "true" when the operator's image makes the certificates. */}}
{{- define "hudi-operator.issuesCertificates" -}}
{{- not (or .Values.etcd.tls.certManager.enabled .Values.etcd.tls.existingSecrets.server) }}
{{- end }}

{{/* Seconds as Go writes a duration: cert-manager stores it in this form, and would otherwise seem to have changed it. */}}
{{- define "hudi-operator.duration" -}}
{{- $seconds := int64 . -}}
{{- printf "%dh%dm%ds" (div $seconds 3600) (div (mod $seconds 3600) 60) (mod $seconds 60) }}
{{- end }}

{{- define "hudi-operator.operatorSecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcdSecret" (list . "operator") }}{{ else }}{{ .Values.externalEtcd.operatorSecret }}{{ end }}
{{- end }}

{{- define "hudi-operator.podSecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcdSecret" (list . "pods") }}{{ else }}{{ .Values.externalEtcd.podSecret }}{{ end }}
{{- end }}

{{/* Egress that every pod needs: names, and the API server, which no selector can name. */}}
{{- define "hudi-operator.egress" -}}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
- to:
  {{- range .Values.networkPolicy.egress.apiServer.cidrs }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
  ports:
  {{- range .Values.networkPolicy.egress.apiServer.ports }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{- end }}

{{/* Egress to etcd: the chart's, or the ports of an external one. */}}
{{- define "hudi-operator.egressEtcd" -}}
{{- if .Values.etcd.enabled }}
- to:
  - namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}
    podSelector:
      matchLabels:
        {{- include "hudi-operator.selector" (list . "etcd") | nindent 8 }}
  ports: [{port: 2379, protocol: TCP}]
{{- else }}
- ports:
  {{- range .Values.externalEtcd.endpoints }}
  - {port: {{ . | splitList ":" | last }}, protocol: TCP}
  {{- end }}
{{- end }}
{{- end }}

{{- define "hudi-operator.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "hudi-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
