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

{{- define "hudi-operator.operatorSecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcd" . }}-operator{{ else }}{{ .Values.externalEtcd.operatorSecret }}{{ end }}
{{- end }}

{{- define "hudi-operator.gateway" -}}
{{ include "hudi-operator.fullname" . }}-gateway
{{- end }}

{{- define "hudi-operator.gatewaySecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcd" . }}-gateway{{ else }}{{ .Values.externalEtcd.gatewaySecret }}{{ end }}
{{- end }}

{{/* Endpoints of the gateway, as JSON: each replica by its own name, so that a pod can switch to another one. */}}
{{- define "hudi-operator.podEndpoints" -}}
{{- $name := include "hudi-operator.gateway" . }}
{{- $endpoints := list }}
{{- range $i := until (int .Values.gateway.replicas) }}
{{- $endpoints = append $endpoints (printf "https://%s-%d.%s.%s.svc:2379" $name $i $name $.Release.Namespace) }}
{{- end }}
{{- toJson $endpoints }}
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
