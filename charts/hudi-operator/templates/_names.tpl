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

{{/* The ClusterRole with which the operator may get Secrets; it binds it to itself, namespace by namespace. */}}
{{- define "hudi-operator.consentRole" -}}
{{ include "hudi-operator.fullname" . }}-consent
{{- end }}

{{/* "true" when the operator reads Secrets: for their owners' consent, or those of attempts that a broker has given credentials. */}}
{{- define "hudi-operator.readsSecrets" -}}
{{- if or (ne .Values.config.consent.secrets "Off") .Values.credentialsBroker.url }}true{{ end }}
{{- end }}

{{/* "true" when that right is bound by the operator, in each namespace with tables: those are not known to a release for all namespaces. */}}
{{- define "hudi-operator.bindsConsent" -}}
{{- if and (include "hudi-operator.readsSecrets" .) (not .Values.config.watchNamespaces) }}true{{ end }}
{{- end }}

{{- define "hudi-operator.leaseName" -}}
{{ default (printf "%s-leader" (include "hudi-operator.fullname" .)) .Values.config.leaderElection.leaseName }}
{{- end }}

{{/* The operator's user name. */}}
{{- define "hudi-operator.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "hudi-operator.serviceAccount" . }}
{{- end }}

{{/*
The start of an admission policy and its binding: (list . "executors"). A third entry of the policy is its annotations. A binding is limited to the namespaces that the release watches: two
releases that divide the namespaces do not judge each other's tables. A third entry of the binding limits it to pods with the labels of that component.
*/}}
{{- define "hudi-operator.policy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ include "hudi-operator.fullname" (index . 0) }}-{{ index . 1 }}
  {{- include "hudi-operator.annotations" (list (index . 0) (gt (len .) 2 | ternary (last .) dict)) }}
  labels:
    {{- include "hudi-operator.labels" (list (index . 0) "admission") | nindent 4 }}
{{- end }}

{{- define "hudi-operator.policyBinding" -}}
{{- $root := index . 0 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "hudi-operator.fullname" $root }}-{{ index . 1 }}
  {{- include "hudi-operator.annotations" (list $root dict) }}
  labels:
    {{- include "hudi-operator.labels" (list $root "admission") | nindent 4 }}
spec:
  policyName: {{ include "hudi-operator.fullname" $root }}-{{ index . 1 }}
  validationActions: [Deny]
  {{- $component := gt (len .) 2 | ternary (last .) "" }}
  {{- if or $component $root.Values.config.watchNamespaces }}
  matchResources:
    {{- with $component }}
    objectSelector:
      matchLabels: {app.kubernetes.io/managed-by: hudi-operator, app.kubernetes.io/component: {{ . }}}
    {{- end }}
    {{- with $root.Values.config.watchNamespaces }}
    namespaceSelector:
      matchExpressions:
      - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
    {{- end }}
  {{- end }}
{{- end }}

{{/* The same without a limit to namespaces: for what concerns the operator's own account, which is confined everywhere. */}}
{{- define "hudi-operator.ownBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "hudi-operator.fullname" (index . 0) }}-{{ index . 1 }}
  {{- include "hudi-operator.annotations" (list (index . 0) dict) }}
  labels:
    {{- include "hudi-operator.labels" (list (index . 0) "admission") | nindent 4 }}
spec:
  policyName: {{ include "hudi-operator.fullname" (index . 0) }}-{{ index . 1 }}
  validationActions: [Deny]
{{- end }}

{{/* CEL: whether a request comes from an account that may start executors, and is nothing else. */}}
{{- define "hudi-operator.byDriver" -}}
request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':') && authorizer.group('hudioperator.io').resource('executors').namespace(request.namespace).check('create').allowed() && !authorizer.group('').resource('pods').namespace(request.namespace).check('release-evidence').allowed()
{{- end }}

{{/* CEL: whether the owner o of a pod has the name of a pod that may start executors: that of an attempt's driver, or of an agent. */}}
{{- define "hudi-operator.ownsExecutors" -}}
o.apiVersion == 'v1' && o.kind == 'Pod' && o.name.matches('^([a-z0-9.-]+-[0-9a-f]{8}|hudi-agent-[0-9a-f]{32})-[0-9]+$')
{{- end }}

{{/* Patterns of the images that tables may name, as JSON: the operator's own Spark image and config.allowedImages. */}}
{{- define "hudi-operator.images" -}}
{{- toJson (prepend .Values.config.allowedImages (include "hudi-operator.sparkImage" .)) }}
{{- end }}

{{/* CEL: whether a string is one of them: (list . "object.spec.image"). A final * stands for anything. */}}
{{- define "hudi-operator.imageAllowed" -}}
{{ include "hudi-operator.images" (index . 0) }}.exists(p, p.endsWith('*') ? {{ index . 1 }}.startsWith(p.substring(0, size(p) - 1)) : {{ index . 1 }} == p)
{{- end }}

{{/* CEL: the injected containers that pods may have (admission.injectors), each as [name, image, capabilities, volumes]. */}}
{{- define "hudi-operator.injectors" -}}
{{- $found := list }}
{{- range .Values.admission.injectors }}
{{- $found = append $found (list .name .image (join " " .capabilities) (join " " .volumes)) }}
{{- end }}
{{- if $found }}{{ toJson $found }}{{ else }}[["", "", "", ""]]{{ end }}
{{- end }}

{{/* CEL: the volumes that injectors add, as a list of names. */}}
{{- define "hudi-operator.injectedVolumes" -}}
{{- $found := list "" }}
{{- range .Values.admission.injectors }}
{{- $found = concat $found .volumes }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{/* CEL: the tokens that identity webhooks add (admission.identities), each as [volume, audience]. */}}
{{- define "hudi-operator.identities" -}}
{{- $found := list }}
{{- range .Values.admission.identities }}
{{- $found = append $found (list .volume .audience) }}
{{- end }}
{{- if $found }}{{ toJson $found }}{{ else }}[["", ""]]{{ end }}
{{- end }}

{{/*
Variables of a policy about HudiTables or HudiWriters: what the podTemplates at these places name. (list "object.spec.driver" "object.spec.executors").
The schema keeps fields of templates that it does not know: dyn() is for the type checker.
*/}}
{{- define "hudi-operator.templateVariables" -}}
{{- $places := . }}
{{- range $field := list "volumes" "containers" "initContainers" }}
- name: {{ $field }}
  expression: >-
    {{- range $i, $at := $places }}
    {{- $way := splitList "." $at }}
    {{- $has := list }}
    {{- $here := "dyn(object)" }}
    {{- range (concat (rest $way) (list "podTemplate" "spec" $field)) }}
    {{- $here = printf "%s.%s" $here . }}
    {{- $has = append $has (printf "has(%s)" $here) }}
    {{- end }}
    {{ if $i }}+ {{ end }}({{ join " && " $has }} ? {{ $here }} : [])
    {{- end }}
{{- end }}
- name: templateContainers
  expression: variables.containers + variables.initContainers
- name: templateSources
  expression: >-
    variables.volumes.filter(v, has(v.projected) && has(v.projected.sources)).map(v, v.projected.sources)
{{- range $kind, $fields := dict "Secrets" (list "secret" "secretName" "secretRef" "secretKeyRef") "ConfigMaps" (list "configMap" "name" "configMapRef" "configMapKeyRef") }}
- name: template{{ $kind }}
  expression: >-
    (variables.volumes.filter(v, has(v.{{ index $fields 0 }}) && has(v.{{ index $fields 0 }}.{{ index $fields 1 }})).map(v, v.{{ index $fields 0 }}.{{ index $fields 1 }}).join(',') + ',' +
     variables.templateSources.map(l, l.filter(s, has(s.{{ index $fields 0 }}) && has(s.{{ index $fields 0 }}.name)).map(s, s.{{ index $fields 0 }}.name).join(',')).join(',') + ',' +
     variables.templateContainers.filter(c, has(c.envFrom)).map(c, c.envFrom.filter(e, has(e.{{ index $fields 2 }}) && has(e.{{ index $fields 2 }}.name)).map(e, e.{{ index $fields 2 }}.name).join(',')).join(',') + ',' +
     variables.templateContainers.filter(c, has(c.env)).map(c, c.env.filter(e, has(e.valueFrom) && has(e.valueFrom.{{ index $fields 3 }}) && has(e.valueFrom.{{ index $fields 3 }}.name)).map(e, e.valueFrom.{{ index $fields 3 }}.name).join(',')).join(','))
    .split(',').filter(n, n != '')
{{- end }}
- name: templateClaims
  expression: >-
    variables.volumes.filter(v, has(v.persistentVolumeClaim) && has(v.persistentVolumeClaim.claimName)).map(v, v.persistentVolumeClaim.claimName)
- name: templateImages
  expression: >-
    variables.templateContainers.filter(c, has(c.image)).map(c, c.image)
- name: templateHosts
  expression: >-
    variables.templateContainers.filter(c, !({{ include "hudi-operator.asksNoHost" . }})).map(c, c.name)
{{- end }}

{{/*
Validations: the user has the verb use on each object of a list. (list "secrets" "variables.secrets" 10), the resource, the names, and how many can be asked
for one by one. A question to the authorizer costs 350000 of the 1000000 that one expression may, and all of a policy 10000000: so two names in each
expression, and who may use all objects of the namespace is asked for no single one.
*/}}
{{- define "hudi-operator.useRules" -}}
{{- $resource := index . 0 }}
{{- $names := index . 1 }}
{{- $most := int (index . 2) }}
{{- $may := printf "authorizer.group('').resource('%s').namespace(request.namespace)" $resource }}
{{- range $i := until (div (add1 $most) 2 | int) }}
{{- $first := mul 2 $i }}
{{- $second := add1 $first }}
- expression: >-
    size({{ $names }}) <= {{ $first }} || variables.mayUseAny_{{ $resource }} || ({{ $may }}.name({{ $names }}[{{ $first }}]).check('use').allowed() &&
    (size({{ $names }}) <= {{ $second }} || {{ $may }}.name({{ $names }}[{{ $second }}]).check('use').allowed()))
  reason: Forbidden
  messageExpression: >-
    "spec: user '" + request.userInfo.username + "' needs the verb use on {{ $resource }} '" + {{ $names }}.join("', '") + "' in namespace " + request.namespace
{{- end }}
- expression: size({{ $names }}) <= {{ mul 2 (div (add1 $most) 2) }} || variables.mayUseAny_{{ $resource }}
  reason: Forbidden
  messageExpression: >-
    "spec: more than {{ mul 2 (div (add1 $most) 2) }} {{ $resource }}: user '" + request.userInfo.username + "' needs the verb use on all {{ $resource }} in namespace " + request.namespace
{{- end }}

{{/* Their variable: (list "secrets") */}}
{{- define "hudi-operator.useVariable" -}}
- name: mayUseAny_{{ index . 0 }}
  expression: authorizer.group('').resource('{{ index . 0 }}').namespace(request.namespace).check('use').allowed()
{{- end }}

{{/* Of a container c: the kubelet sends the requests of its probes and handlers from the node's network, so they ask the pod itself. */}}
{{- define "hudi-operator.asksNoHost" -}}
{{- range $i, $handler := list "livenessProbe" "readinessProbe" "startupProbe" "lifecycle.postStart" "lifecycle.preStop" }}
{{- if $i }} && {{ end }}
{{- $parent := ternary (printf "!has(c.%s) || " (first (splitList "." $handler))) "" (contains "." $handler) -}}
({{ $parent }}!has(c.{{ $handler }}) || (
{{- range $j, $kind := list "httpGet" "tcpSocket" }}
{{- if $j }} && {{ end -}}
(!has(c.{{ $handler }}.{{ $kind }}) || !has(c.{{ $handler }}.{{ $kind }}.host) || c.{{ $handler }}.{{ $kind }}.host == '')
{{- end }}))
{{- end }}
{{- end }}

{{/* Validations of the containers of templates. */}}
{{- define "hudi-operator.templateRules" -}}
- expression: >-
    variables.templateImages.all(i, {{ include "hudi-operator.imageAllowed" (list . "i") }})
  messageExpression: >-
    "podTemplate: images '" + variables.templateImages.join("', '") + "' are not all among those that this cluster allows: {{ include "hudi-operator.images" . | fromJsonArray | join ", " }} (the chart's config.allowedImages)"
- expression: >-
    size(variables.templateHosts) == 0
  messageExpression: >-
    "podTemplate: probes and lifecycle handlers may name no host, because the kubelet would ask it from the node's network: containers " +
    variables.templateHosts.join(', ')
{{- end }}

{{/* Variables of a policy that uses the next template: (list . (list "executor")), the names of the containers that are ours. */}}
{{- define "hudi-operator.podVariables" -}}
- name: injectors
  expression: >-
    {{ include "hudi-operator.injectors" (index . 0) }}
- name: injectedVolumes
  expression: >-
    {{ include "hudi-operator.injectedVolumes" (index . 0) }}
- name: identities
  expression: >-
    {{ include "hudi-operator.identities" (index . 0) }}
- name: initContainers
  expression: "has(object.spec.initContainers) ? object.spec.initContainers : []"
- name: volumes
  expression: "has(object.spec.volumes) ? object.spec.volumes : []"
- name: injected
  expression: >-
    (object.spec.containers + variables.initContainers).filter(c, !(c.name in {{ toJson (index . 1) }}) && variables.injectors.exists(i, i[0] == c.name && (i[1].endsWith('*') ? c.image.startsWith(i[1].substring(0, size(i[1]) - 1)) : c.image == i[1]))).map(c, c.name)
- name: foreign
  expression: >-
    (object.spec.containers + variables.initContainers).filter(c, !(c.name in {{ toJson (index . 1) }}) && !(c.name in variables.injected) && !({{ include "hudi-operator.imageAllowed" (list (index . 0) "c.image") }})).map(c, c.name)
{{- end }}

{{/*
Validations of a pod: nothing in it reaches the node, another account or another container. (list . (list "executor") "an executor")
*/}}
{{- define "hudi-operator.podRules" -}}
{{- $main := toJson (index . 1) }}
{{- $what := index . 2 }}
- expression: object.spec.restartPolicy == 'Never'
  messageExpression: >-
    "spec.restartPolicy of {{ $what }} must be Never, not " + object.spec.restartPolicy + ": a container that starts again has not ended"
- expression: >-
    !(has(object.spec.hostNetwork) && object.spec.hostNetwork) && !(has(object.spec.hostPID) && object.spec.hostPID) &&
    !(has(object.spec.hostIPC) && object.spec.hostIPC)
  message: "spec.hostNetwork, hostPID and hostIPC of {{ $what }} must be false: the network of the pod must end with the pod"
- expression: >-
    variables.volumes.all(v, has(v.emptyDir) || has(v.configMap) || has(v.secret) || has(v.persistentVolumeClaim) || has(v.downwardAPI) ||
    (has(v.ephemeral) && has(v.ephemeral.volumeClaimTemplate) && !has(v.ephemeral.volumeClaimTemplate.spec.dataSource) && !has(v.ephemeral.volumeClaimTemplate.spec.dataSourceRef) &&
     !has(v.ephemeral.volumeClaimTemplate.spec.selector) && !has(v.ephemeral.volumeClaimTemplate.spec.volumeName)) ||
    (has(v.projected) && has(v.projected.sources) && v.projected.sources.all(s, has(s.configMap) || has(s.secret) || has(s.downwardAPI))) ||
    ((v.name in variables.injectedVolumes{{ if ne (first (index . 1)) "executor" }} || v.name.startsWith('kube-api-access-'){{ end }}) &&
     (has(v.downwardAPI) || (has(v.projected) && v.projected.sources.all(s, !has(s.secret))))) ||
    variables.identities.exists(i, i[0] == v.name && has(v.projected) && v.projected.sources.all(s,
     has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) && s.serviceAccountToken.audience == i[1]))
    {{- if ne (first (index . 1)) "executor" }} ||
    (v.name == 'etcd' && has(v.projected) && v.projected.sources.all(s,
     (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) && s.serviceAccountToken.audience == 'hudi-operator-etcd') ||
     (has(s.configMap) && has(s.configMap.name) && s.configMap.name == 'hudi-operator-etcd'))){{ end }})
  messageExpression: >-
    "spec.volumes of {{ $what }} must be emptyDir, configMap or secret (or downwardAPI, ephemeral, persistentVolumeClaim, projected without tokens), or belong to an injector of the chart's admission.injectors or an identity of admission.identities: " +
    variables.volumes.filter(v, !(has(v.emptyDir) || has(v.configMap) || has(v.secret) || has(v.persistentVolumeClaim) || has(v.downwardAPI)) && !(v.name in variables.injectedVolumes)).map(v, v.name).join(', ')
- expression: size(variables.foreign) == 0
  messageExpression: >-
    "{{ $what }} has containers that are neither its own nor those of an injector in the chart's admission.injectors, and whose image config.allowedImages does not allow: " + variables.foreign.join(', ')
- expression: >-
    !object.spec.containers.exists(c, has(c.securityContext) && has(c.securityContext.privileged) && c.securityContext.privileged) &&
    !variables.initContainers.exists(c, has(c.securityContext) && has(c.securityContext.privileged) && c.securityContext.privileged)
  message: "securityContext.privileged of each container of {{ $what }} must be false"
- expression: >-
    (object.spec.containers + variables.initContainers).all(c, c.name in variables.injected || (has(c.securityContext) &&
    has(c.securityContext.allowPrivilegeEscalation) && !c.securityContext.allowPrivilegeEscalation &&
    has(c.securityContext.capabilities) && has(c.securityContext.capabilities.drop) && 'ALL' in c.securityContext.capabilities.drop &&
    !(has(c.securityContext.runAsUser) && c.securityContext.runAsUser == 0) && !(has(c.securityContext.runAsNonRoot) && !c.securityContext.runAsNonRoot)))
  message: "the containers of {{ $what }}, except those of injectors, must run as the operator sets it: no root user, allowPrivilegeEscalation false, all capabilities dropped"
- expression: >-
    object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.capabilities) || !has(c.securityContext.capabilities.add) ||
    c.securityContext.capabilities.add.all(n, !(c.name in {{ $main }}) && variables.injectors.exists(i, i[0] == c.name && n in i[2].split(' ')))) &&
    variables.initContainers.all(c, !has(c.securityContext) || !has(c.securityContext.capabilities) || !has(c.securityContext.capabilities.add) ||
    c.securityContext.capabilities.add.all(n, variables.injectors.exists(i, i[0] == c.name && n in i[2].split(' '))))
  message: "capabilities of a container of {{ $what }} may be added only as the chart's admission.injectors says"
- expression: >-
    object.spec.containers.all(c, (!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)) && !has(c.volumeDevices) &&
    !(has(c.securityContext) && has(c.securityContext.procMount) && c.securityContext.procMount != 'Default')) &&
    variables.initContainers.all(c, (!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)) && !has(c.volumeDevices) &&
    !(has(c.securityContext) && has(c.securityContext.procMount) && c.securityContext.procMount != 'Default'))
  message: "containers of {{ $what }} may have no hostPort, volumeDevices and procMount: they reach the node"
- expression: >-
    (object.spec.containers + variables.initContainers).all(c, {{ include "hudi-operator.asksNoHost" . }})
  message: "probes and lifecycle handlers of {{ $what }} may name no host: the kubelet would ask it from the node's network"
- expression: >-
    has(object.spec.securityContext) && has(object.spec.securityContext.runAsNonRoot) && object.spec.securityContext.runAsNonRoot &&
    {{- if eq (index . 0).Values.userIds "Platform" }}
    !(has(object.spec.securityContext.seLinuxOptions) && (has(object.spec.securityContext.seLinuxOptions.user) || has(object.spec.securityContext.seLinuxOptions.role) || has(object.spec.securityContext.seLinuxOptions.type))) &&
    {{- else }}
    !has(object.spec.securityContext.seLinuxOptions) &&
    {{- end }}
    !has(object.spec.securityContext.sysctls) && !has(object.spec.securityContext.windowsOptions) &&
    has(object.spec.securityContext.seccompProfile) && object.spec.securityContext.seccompProfile.type != 'Unconfined' &&
    !(has(object.spec.securityContext.appArmorProfile) && object.spec.securityContext.appArmorProfile.type == 'Unconfined')
  message: "spec.securityContext of {{ $what }} must have runAsNonRoot and a seccomp profile, and neither seLinuxOptions{{ if eq (index . 0).Values.userIds "Platform" }} except level{{ end }}, sysctls, windowsOptions nor an Unconfined profile"
# What a container says counts before what its pod says.
- expression: >-
    (object.spec.containers + variables.initContainers).all(c, !has(c.securityContext) || (
    {{- if eq (index . 0).Values.userIds "Platform" }}
    !(has(c.securityContext.seLinuxOptions) && (has(c.securityContext.seLinuxOptions.user) || has(c.securityContext.seLinuxOptions.role) || has(c.securityContext.seLinuxOptions.type))) &&
    {{- else }}
    !has(c.securityContext.seLinuxOptions) &&
    {{- end }}
    !has(c.securityContext.windowsOptions) &&
    !(has(c.securityContext.seccompProfile) && c.securityContext.seccompProfile.type == 'Unconfined') &&
    !(has(c.securityContext.appArmorProfile) && c.securityContext.appArmorProfile.type == 'Unconfined'))) &&
    (!has(object.metadata.annotations) || object.metadata.annotations.all(k, !k.startsWith('container.apparmor.security.') || object.metadata.annotations[k] != 'unconfined'))
  message: "securityContext of the containers of {{ $what }} may have no seLinuxOptions{{ if eq (index . 0).Values.userIds "Platform" }} except level{{ end }} and windowsOptions, and no profile of seccomp or AppArmor may be Unconfined"
- expression: "!has(object.spec.hostAliases)"
  message: "spec.hostAliases is not for {{ $what }}: names are those of the cluster"
- expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''"
  messageExpression: >-
    "spec.nodeName of {{ $what }} must be empty, not " + object.spec.nodeName + ": the scheduler chooses the node"
- expression: >-
    !(has(object.spec.shareProcessNamespace) && object.spec.shareProcessNamespace) && !has(object.spec.resourceClaims) &&
    !(has(object.spec.priorityClassName) && object.spec.priorityClassName.startsWith('system-'))
  message: "spec.shareProcessNamespace, resourceClaims and priority classes of the system are not for {{ $what }}"
{{- end }}

{{/* Labels that select a component's pods: (list . "operator") */}}
{{- define "hudi-operator.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "hudi-operator.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* All labels of an object of a component: (list . "operator"). A third entry: more of them, before those of commonLabels. */}}
{{- define "hudi-operator.labels" -}}
{{- $root := index . 0 -}}
{{ include "hudi-operator.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with merge dict (gt (len .) 2 | ternary (last .) dict) $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Annotations of an object, its own before those of commonAnnotations: (list . OWN). A line break comes before them, and without any nothing. */}}
{{- define "hudi-operator.annotations" -}}
{{- with merge dict (index . 1) (index . 0).Values.commonAnnotations }}
{{- dict "annotations" . | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{/* The label job of what Prometheus scrapes of a component: (list . "operator") */}}
{{- define "hudi-operator.job" -}}
{{- $root := index . 0 -}}
{{ $root.Release.Namespace }}/{{ include "hudi-operator.fullname" $root }}{{ if ne (index . 1) "operator" }}-{{ index . 1 }}{{ end }}
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

{{/* The image of drivers, executors and agents. */}}
{{- define "hudi-operator.sparkImage" -}}
{{- if .Values.config.sparkImage }}{{ .Values.config.sparkImage }}{{ else }}{{ include "hudi-operator.image" (list . "spark" dict) }}{{ end }}
{{- end }}

{{- /*
Services of a StatefulSet's pods, one for each: (list . "etcd" NAME REPLICAS). The address of such a Service stays when its
pod is replaced: what a DNS server or a JVM remembers of the former pod is right, however long it remembers it. Leases do not live long enough to wait.
*/ -}}
{{- define "hudi-operator.addresses" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $name := index . 2 }}
{{- range $i := until (int (index . 3)) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}-{{ $i }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "hudi-operator.annotations" (list $root dict) }}
  labels:
    # Not the component's own: a ServiceMonitor selects by that, and would find each pod twice.
    {{- include "hudi-operator.labels" (list $root (print $component "-address")) | nindent 4 }}
spec:
  # A pod that is not ready for a moment keeps its address; its clients have others to go to.
  publishNotReadyAddresses: true
  selector:
    {{- include "hudi-operator.selector" (list $root $component) | nindent 4 }}
    statefulset.kubernetes.io/pod-name: {{ $name }}-{{ $i }}
  ports:
  - {name: client, port: 2379}
{{- end }}
{{- end }}

{{/* Endpoints of etcd, as JSON: each member by the name of its Service, so that a client can switch to another one. */}}
{{- define "hudi-operator.endpoints" -}}
{{- if .Values.etcd.enabled }}
{{- $name := include "hudi-operator.etcd" . }}
{{- $endpoints := list }}
{{- /* A member that joins answers nobody before it has a vote. */}}
{{- range $i := until (.Values.etcd.joins | ternary (sub (int .Values.etcd.members) 1) .Values.etcd.members | int) }}
{{- $endpoints = append $endpoints (printf "https://%s-%d.%s.svc:2379" $name $i $.Release.Namespace) }}
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

{{- define "hudi-operator.gateway" -}}
{{ include "hudi-operator.fullname" . }}-gateway
{{- end }}

{{- define "hudi-operator.gatewaySecret" -}}
{{- if .Values.etcd.enabled }}{{ include "hudi-operator.etcdSecret" (list . "gateway") }}{{ else }}{{ .Values.externalEtcd.gatewaySecret }}{{ end }}
{{- end }}

{{/* Endpoints of the gateway, as JSON: each replica by the name of its Service, so that a pod can switch to another one. */}}
{{- define "hudi-operator.podEndpoints" -}}
{{- $name := include "hudi-operator.gateway" . }}
{{- $endpoints := list }}
{{- range $i := until (int .Values.gateway.replicas) }}
{{- $endpoints = append $endpoints (printf "https://%s-%d.%s.svc:2379" $name $i $.Release.Namespace) }}
{{- end }}
{{- toJson $endpoints }}
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

{{/* Egress of drivers and agents to the gateway. */}}
{{- define "hudi-operator.egressGateway" -}}
- to:
  - namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}
    podSelector:
      matchLabels:
        {{- include "hudi-operator.selector" (list . "gateway") | nindent 8 }}
  ports: [{port: 2379, protocol: TCP}]
{{- end }}

{{- /* With userIds: Platform the platform's admission adds users and groups; it refuses pods that name others. */}}
{{- define "hudi-operator.podSecurity" -}}
runAsNonRoot: true
{{- if eq .Values.userIds "Image" }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "hudi-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* A map with the fields of another over it, each as a whole: (list MAP OVER). The functions merge take false and 0 for nothing. */}}
{{- define "hudi-operator.over" -}}
{{- $found := index . 0 }}
{{- range $name, $value := index . 1 }}
{{- $_ := set $found $name $value }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{- /*
What the values of a component say of its container, those of the operator, .Values.gateway or .Values.etcd: (list . OWN). The chart's security
context, with theirs over it.
*/}}
{{- define "hudi-operator.container" -}}
{{- $root := index . 0 }}
{{- $own := index . 1 }}
resources:
  {{- toYaml $own.resources | nindent 2 }}
securityContext:
  {{- include "hudi-operator.over" (list (include "hudi-operator.containerSecurity" $root | fromYaml) $own.containerSecurityContext) | nindent 2 }}
{{- end }}

{{- /*
What the values of a component say of its pods and where they run: (list . "gateway" OWN DEFAULTS). DEFAULTS are its affinity and
topologySpreadConstraints when the values have neither.
*/}}
{{- define "hudi-operator.pod" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $own := index . 2 }}
{{- $placed := $own }}
{{- if not (or $own.affinity $own.topologySpreadConstraints) }}
{{- $placed = index . 3 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.priorityClassName | default $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
securityContext:
  {{- include "hudi-operator.over" (list (include "hudi-operator.podSecurity" $root | fromYaml) $own.podSecurityContext) | nindent 2 }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placed.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $placed.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
{{- $pods := dict "labelSelector" (dict "matchLabels" (include "hudi-operator.selector" (list $root $component) | fromYaml)) }}
- {{ include "hudi-operator.over" (list $pods .) | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Pods of a component are spread over the nodes, as far as there are any. */}}
{{- define "hudi-operator.spread" -}}
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
{{- end }}

{{/* The settings of config.yaml whose change needs a restart: all but those that the operator reads again. */}}
{{- define "hudi-operator.fixedConfig" -}}
{{- $config := (include (print $.Template.BasePath "/config.yaml") . | fromYaml) }}
{{- omit (index $config.data "config.yaml" | fromYaml) "allowedSchemes" "pathPrefixes" "storeEndpoints" "allowedImages" "consent" "options" "agent" "imagePullPolicy" "networkPolicies" "driverAnnotations" "agentAnnotations" "tmpSizeLimit" "userIds" | toJson }}
{{- end }}

{{/* The budget of evictions of a component's pods: (list . "gateway" NAME OWN). */}}
{{- define "hudi-operator.podDisruptionBudget" -}}
{{- $root := index . 0 }}
{{- $budget := (index . 3).podDisruptionBudget }}
{{- if $budget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  {{- include "hudi-operator.annotations" (list $root dict) }}
  labels:
    {{- include "hudi-operator.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  maxUnavailable: {{ $budget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "hudi-operator.selector" (list $root (index . 1)) | nindent 6 }}
{{- end }}
{{- end }}

{{- /* Secrets that the operator mounts for credentialsBroker, by the name of the volume. */}}
{{- define "hudi-operator.brokerSecrets" -}}
{{- with .Values.credentialsBroker }}
{{- if and .url .tokenSecret }}
broker-token: {{ .tokenSecret }}
{{- end }}
{{- if and .url .caSecret }}
broker-ca: {{ .caSecret }}
{{- end }}
{{- if and .url .storeCaSecret }}
store-ca: {{ .storeCaSecret }}
{{- end }}
{{- end }}
{{- end }}
