{{- define "potok.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "potok.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "potok.labels" -}}
{{ include "potok.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "potok.scheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "potok.runsProgram" -}}
{{- if or .Values.program.source .Values.program.existingConfigMap }}true{{ end -}}
{{- end -}}

{{- define "potok.broker" -}}
{{- if eq .Values.log.kind "kafka" }}kafka://{{ .Values.log.kafka.brokers }}{{ else }}file:/data/log{{ end -}}
{{- end -}}

{{- define "potok.args" -}}
{{- if include "potok.runsProgram" . }}
- run
- /etc/potok/program/program.py
- --serve
- 0.0.0.0:8088
{{- else }}
- serve
- --host
- 0.0.0.0
{{- if .Values.script }}
- --script
- /etc/potok/files/script.sql
{{- end }}
{{- range .Values.cors }}
- --cors
- {{ . | quote }}
{{- end }}
{{- with .Values.maxRequests }}
- --max-requests
- {{ . | quote }}
{{- end }}
{{- end }}
- --tokens
- /etc/potok/tokens/tokens.toml
{{- if .Values.tls.existingSecret }}
- --tls-cert
- /etc/potok/tls/tls.crt
- --tls-key
- /etc/potok/tls/tls.key
{{- end }}
{{- range .Values.allowedHosts }}
- --allowed-host
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The pod, the same in the StatefulSet and the Deployment. */}}
{{- define "potok.pod" -}}
metadata:
  labels:
    {{- include "potok.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed program, script or setting restarts the pod; tokens and certificates are read while it runs.
    checksum/files: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "potok.name" . }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: potok
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- include "potok.args" . | trim | nindent 8 }}
      workingDir: /etc/potok/files
      env:
        - name: POTOK_BROKER
          value: {{ include "potok.broker" . | quote }}
        {{- with .Values.state.url }}
        - name: POTOK_STATE
          value: {{ . | quote }}
        {{- end }}
        - name: POTOK_LOG_LEVEL
          value: {{ .Values.logLevel | quote }}
        - name: POTOK_LOG_FORMAT
          value: {{ .Values.logFormat | quote }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or .Values.envFrom .Values.state.existingSecret .Values.log.kafka.existingSecret }}
      envFrom:
        {{- with .Values.state.existingSecret }}
        - secretRef:
            name: {{ . }}
        {{- end }}
        {{- with .Values.log.kafka.existingSecret }}
        - secretRef:
            name: {{ . }}
        {{- end }}
        {{- with .Values.envFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8088
      # Java and Spark take up to a minute at the first start.
      startupProbe:
        httpGet: {path: /livez, port: http, scheme: {{ include "potok.scheme" . }}}
        periodSeconds: 5
        failureThreshold: 36
      livenessProbe:
        httpGet: {path: /livez, port: http, scheme: {{ include "potok.scheme" . }}}
        periodSeconds: 30
        timeoutSeconds: 10
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "potok.scheme" . }}}
        periodSeconds: 10
        timeoutSeconds: 10
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: data
          mountPath: /data
        - name: scratch
          mountPath: /tmp
        - name: scratch
          mountPath: /var/lib/potok
          subPath: home
        - name: files
          mountPath: /etc/potok/files
        {{- if include "potok.runsProgram" . }}
        - name: program
          mountPath: /etc/potok/program
        {{- end }}
        - name: tokens
          mountPath: /etc/potok/tokens
          readOnly: true
        {{- if .Values.tls.existingSecret }}
        - name: tls
          mountPath: /etc/potok/tls
          readOnly: true
        {{- end }}
  volumes:
    {{- if eq .Values.log.kind "kafka" }}
    - name: data
      emptyDir: {}
    {{- end }}
    - name: scratch
      emptyDir:
        sizeLimit: {{ .Values.scratch.sizeLimit }}
    - name: files
      configMap:
        name: {{ include "potok.name" . }}
    {{- if include "potok.runsProgram" . }}
    - name: program
      configMap:
        name: {{ .Values.program.existingConfigMap | default (include "potok.name" .) }}
    {{- end }}
    - name: tokens
      secret:
        secretName: {{ .Values.tokens.existingSecret | default (printf "%s-tokens" (include "potok.name" .)) }}
        defaultMode: 0440
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
