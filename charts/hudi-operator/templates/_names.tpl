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

{{/* The ClusterRole that lets drivers start executors. */}}
{{- define "hudi-operator.driverRole" -}}
{{ include "hudi-operator.fullname" . }}-driver
{{- end }}

{{- define "hudi-operator.leaseName" -}}
{{ default (printf "%s-leader" (include "hudi-operator.fullname" .)) .Values.config.leaderElection.leaseName }}
{{- end }}

{{/* The operator's user name. */}}
{{- define "hudi-operator.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "hudi-operator.serviceAccount" . }}
{{- end }}

{{/*
The start of an admission policy and its binding: (list . "executors"). A binding is limited to the namespaces that the release watches: two
releases that divide the namespaces do not judge each other's tables.
*/}}
{{- define "hudi-operator.policy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ include "hudi-operator.fullname" (index . 0) }}-{{ index . 1 }}
  labels:
    {{- include "hudi-operator.labels" (list (index . 0) "admission") | nindent 4 }}
{{- end }}

{{- define "hudi-operator.policyBinding" -}}
{{- $root := index . 0 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "hudi-operator.fullname" $root }}-{{ index . 1 }}
  labels:
    {{- include "hudi-operator.labels" (list $root "admission") | nindent 4 }}
spec:
  policyName: {{ include "hudi-operator.fullname" $root }}-{{ index . 1 }}
  validationActions: [Deny]
  {{- with $root.Values.config.watchNamespaces }}
  matchResources:
    namespaceSelector:
      matchExpressions:
      - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
  {{- end }}
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

{{- define "hudi-operator.podSecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcd" . }}-pods{{ else }}{{ .Values.externalEtcd.podSecret }}{{ end }}
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
