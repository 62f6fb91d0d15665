{{/* Pod-wide: nothing that the restricted pod security standard refuses. */}}
{{- define "sevenhop.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "sevenhop.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/*
Given (root, component), the environment of a service container: secrets by the setting's path, in capitals with two
underscores between; those of the component's own come on top.
*/}}
{{- define "sevenhop.env" -}}
{{- $root := index . 0 -}}
{{- $own := default dict (default dict (index $root.Values (index . 1))).secrets -}}
{{- if eq (index . 1) "service" }}{{ $own = dict }}{{ end -}}
- {name: SEVENHOP_CONFIG, value: /etc/sevenhop/config/sevenhop.yaml}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- range $setting, $key := merge (deepCopy $own) $root.Values.secrets.settings }}
- name: SEVENHOP__{{ $setting | replace "." "__" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $root.Values.secrets.existingSecret | quote }}, key: {{ $key | quote }}}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sevenhop.volumeMounts" -}}
- {name: config, mountPath: /etc/sevenhop/config, readOnly: true}
- {name: state, mountPath: /var/lib/sevenhop}
- {name: tmp, mountPath: /tmp}
{{- range $hop, $_ := .Values.rules }}
- {name: rules-{{ $hop }}, mountPath: /etc/sevenhop/rules/{{ $hop }}, readOnly: true}
{{- end }}
{{- if .Values.playbooks }}
- {name: playbooks, mountPath: /etc/sevenhop/playbooks, readOnly: true}
{{- end }}
{{- if .Values.web.tls.existingSecret }}
- {name: tls, mountPath: /etc/sevenhop/tls, readOnly: true}
{{- end }}
{{- if .Values.certificates.existingSecret }}
- {name: certificates, mountPath: /etc/sevenhop/certificates, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sevenhop.volumes" -}}
{{- $name := include "sevenhop.fullname" . -}}
- name: config
  configMap: {name: {{ $name }}-config}
- name: state
{{- if .Values.state.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .Values.state.existingClaim | quote }}}
{{- else }}
  emptyDir: {sizeLimit: {{ .Values.state.sizeLimit | quote }}}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- range $hop, $files := .Values.rules }}
# A folder names the hop of its rules.
- name: rules-{{ $hop }}
  configMap:
    name: {{ $name }}-rules
    items:
      {{- range $file, $_ := $files }}
      - {key: {{ $hop }}.{{ $file }}, path: {{ $file }}}
      {{- end }}
{{- end }}
{{- if .Values.playbooks }}
- name: playbooks
  configMap: {name: {{ $name }}-playbooks}
{{- end }}
{{- with .Values.web.tls.existingSecret }}
- name: tls
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- with .Values.certificates.existingSecret }}
- name: certificates
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Given (root, path): an HTTP probe at the service's door. */}}
{{- define "sevenhop.probe" -}}
{{- $root := index . 0 -}}
httpGet:
  path: {{ index . 1 }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" (not (empty $root.Values.web.tls.existingSecret)) }}
{{- end -}}

{{/* Given (root, component, replicas, resources, account): one Deployment of `sevenhop run`. */}}
{{- define "sevenhop.deployment" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $replicas := index . 2 -}}
{{- $account := index . 4 -}}
{{- $name := include "sevenhop.fullname" $root -}}
{{- $labels := include "sevenhop.labels" (list $root $component) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ ternary $name (printf "%s-%s" $name $component) (eq $component "service") }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
spec:
  replicas: {{ $replicas }}
  revisionHistoryLimit: 3
  {{- if and (eq $component "service") (eq (int $replicas) 1) }}
  # Two processes must not tell the same things, not even while one takes over from the other.
  strategy: {type: Recreate}
  {{- else }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  {{- end }}
  selector:
    matchLabels: {{- include "sevenhop.selector" (list $root $component) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
        {{- with $root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: sevenhop
        # Settings are read at the start: other settings are other pods.  Rules and playbooks are taken over as it runs.
        checksum/config: {{ include "sevenhop.config" $root | sha256sum }}
        {{- with $root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ $account }}
      automountServiceAccountToken: {{ ne $component "worker" }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
      securityContext: {{- include "sevenhop.podSecurity" $root | nindent 8 }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $root.Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $root.Values.topologySpreadConstraints }}
      topologySpreadConstraints: {{- toYaml $root.Values.topologySpreadConstraints | nindent 8 }}
      {{- else if gt (int $replicas) 1 }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "sevenhop.selector" (list $root $component) | nindent 14 }}
      {{- end }}
      containers:
        - name: sevenhop
          image: {{ include "sevenhop.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args:
            - run
            - --log-level={{ $root.Values.logLevel }}
            - --log-format={{ $root.Values.logFormat }}
          env:
            {{- if ne $component "service" }}
            - {name: SEVENHOP__RUNTIME__ROLE, value: {{ $component }}}
            {{- end }}
            {{- if and (ne $component "worker") (include "sevenhop.elects" $root) }}
            - {name: SEVENHOP__RUNTIME__LEASE, value: {{ printf "%s/%s" $root.Release.Namespace $name | quote }}}
            {{- end }}
            {{- include "sevenhop.env" (list $root $component) | nindent 12 }}
          {{- with $root.Values.extraEnvFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: http, containerPort: {{ $root.Values.web.port }}, protocol: TCP}
          startupProbe:
            {{- include "sevenhop.probe" (list $root "/healthz") | nindent 12 }}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            {{- include "sevenhop.probe" (list $root "/healthz") | nindent 12 }}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          # A replica that waits for its Lease is ready to take over, so it is ready.
          readinessProbe:
            {{- include "sevenhop.probe" (list $root "/readyz") | nindent 12 }}
            periodSeconds: 5
            timeoutSeconds: 5
          securityContext: {{- include "sevenhop.containerSecurity" $root | nindent 12 }}
          resources: {{- toYaml (index . 3) | nindent 12 }}
          volumeMounts: {{- include "sevenhop.volumeMounts" $root | nindent 12 }}
      volumes: {{- include "sevenhop.volumes" $root | nindent 8 }}
{{- end -}}
