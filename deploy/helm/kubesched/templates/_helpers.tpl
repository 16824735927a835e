{{- define "kubesched.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods: it must not change over the life of a release. */}}
{{- define "kubesched.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "kubesched.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kubesched.selectorLabels" . }}
app.kubernetes.io/part-of: kubesched
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "kubesched.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kubesched.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed if serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kubesched.leaseName" -}}
{{- default (include "kubesched.fullname" .) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "kubesched.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The configuration that is written: the values', with the lease of the release. */}}
{{- define "kubesched.config" -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicaCount) 1) -}}
{{- fail "leaderElection.enabled must be true if there is more than one replica" -}}
{{- end -}}
{{- $election := dict "leaderElect" .Values.leaderElection.enabled
      "resourceName" (include "kubesched.leaseName" .)
      "resourceNamespace" .Release.Namespace
      "leaseDuration" .Values.leaderElection.leaseDuration
      "renewDeadline" .Values.leaderElection.renewDeadline
      "retryPeriod" .Values.leaderElection.retryPeriod -}}
{{- $head := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" -}}
{{- toYaml (mergeOverwrite $head (deepCopy .Values.config) (dict "leaderElection" $election)) -}}
{{- end -}}
