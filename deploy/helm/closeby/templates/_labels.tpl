{{- define "closeby.selector" -}}
app.kubernetes.io/name: closeby
app.kubernetes.io/component: proxy
{{- end -}}

{{- define "closeby.labels" -}}
{{ include "closeby.selector" . }}
{{ include "closeby.release" . }}
{{- end -}}

{{- define "closeby.release" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "closeby.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "closeby.config" -}}
{{- $defaults := dict "apiVersion" "kubeproxy.config.k8s.io/v1alpha1" "kind" "KubeProxyConfiguration" "mode" "nftables" "oomScoreAdj" -997 -}}
{{- toYaml (mergeOverwrite $defaults (deepCopy .Values.config)) -}}
{{- end -}}

{{- /* The folder of the announcer's sockets is the kubelet's, of root; its owner may give it to a group of his own. */ -}}
{{- define "closeby.sockets" -}}
- name: sockets
  image: {{ include "closeby.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/usr/bin/python3.11, -I, -S, -c, "import os; os.chown('{{ .path }}', -1, 65532); os.chmod('{{ .path }}', 0o770)"]
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: {{ .volume }}
      mountPath: {{ .path }}
{{- end -}}
