{{/* Labels of an object, each key once. Argument: `dict "root" . "component" "operator"`; where users add labels, also
`"extra" .Values.podLabels "from" "podLabels"`. A label of `extra` replaces one of the chart, unless selectors use its key. `own`, if
any, holds labels of this object alone that selectors use. */}}
{{- define "gleaner.labels" -}}
{{- $selector := include "gleaner.selector" . | fromYaml }}
{{- $labels := dict "app.kubernetes.io/part-of" "gleaner" "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") }}
{{- range $key, $_ := .extra }}
{{- if or (hasKey $selector $key) (hasPrefix "gleaner.dev/" $key) }}
{{- fail (printf "%s may not set the label %s, because selectors use it; remove it from %s" $.from $key $.from) }}
{{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $labels (.extra | default dict) (.own | default dict) $selector) }}
{{- end }}

{{- define "gleaner.selector" -}}
{{- $name := printf "gleaner-%s" .component }}
{{- toYaml (dict "app.kubernetes.io/name" $name "app.kubernetes.io/instance" .root.Release.Name) }}
{{- end }}

{{/* Labels of the pods of all agents, of whichever DaemonSet. */}}
{{- define "gleaner.agentPods" -}}
gleaner.dev/component: agent
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "gleaner.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Metadata of every pod template. Argument: `dict "root" . "component" ... "values" .Values.operator`, and `own` as in
gleaner.labels. */}}
{{- define "gleaner.podMeta" -}}
labels:
  {{- $part := dict "root" .root "component" .component "own" .own "extra" .root.Values.podLabels "from" "podLabels" }}
  {{- include "gleaner.labels" $part | nindent 2 }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Argument: as of gleaner.podMeta; `account` names the component whose service account the pods use, by default their own. */}}
{{- define "gleaner.podSpec" -}}
serviceAccountName: gleaner-{{ .account | default .component }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Affinity of a Deployment's pods. The default prefers to place replicas on different nodes. */}}
{{- define "gleaner.affinity" -}}
affinity:
  {{- if .values.affinity }}
  {{- toYaml .values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "gleaner.selector" . | nindent 14 }}
  {{- end }}
{{- end }}

{{- define "gleaner.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Probes on the named port: /healthz failing restarts the container, /readyz failing takes the pod out of its Service. */}}
{{- define "gleaner.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}
