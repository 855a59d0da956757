{{- define "closeby.selector" -}}
app.kubernetes.io/name: closeby
app.kubernetes.io/component: proxy
{{- end -}}

{{- define "closeby.labels" -}}
{{ include "closeby.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "closeby.config" -}}
{{- $defaults := dict "apiVersion" "kubeproxy.config.k8s.io/v1alpha1" "kind" "KubeProxyConfiguration" "mode" "nftables" "oomScoreAdj" -997 -}}
{{- toYaml (mergeOverwrite $defaults (deepCopy .Values.config)) -}}
{{- end -}}
