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

{{/* Where the image of a name is, when it has no repository of its own: (list . "operator" .Values.image.repository) */}}
{{- define "hudi-operator.repository" -}}
{{- $root := index . 0 }}
{{- $own := index . 2 }}
{{- if not (or $own $root.Values.images.registry) }}
{{- fail (printf "images.registry: required: no registry has images of this project, so there is no default. Build the images, push them to your registry and name it: --set images.registry=HOST/PATH (or name the image %s by itself, see values.yaml)" (index . 1)) }}
{{- end }}
{{- $own | default (printf "%s/%s" $root.Values.images.registry (index . 1)) }}
{{- end }}

{{/* The name of an image: (list . "operator" .Values.image) */}}
{{- define "hudi-operator.image" -}}
{{- $root := index . 0 }}
{{- $image := index . 2 }}
{{- include "hudi-operator.repository" (list $root (index . 1) $image.repository) }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Values.images.tag | default $root.Chart.AppVersion }}{{ end }}
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
