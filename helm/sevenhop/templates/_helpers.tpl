{{- define "sevenhop.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 characters, so that a component's name and a Deployment's hashes still fit. */}}
{{- define "sevenhop.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sevenhop.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sevenhop.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Cluster-wide objects carry the namespace: two releases of one name would share them. */}}
{{- define "sevenhop.clusterwide" -}}
{{- printf "%s-%s" .Release.Namespace (include "sevenhop.fullname" .) -}}
{{- end -}}

{{/* Given (root, component). */}}
{{- define "sevenhop.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "sevenhop.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name | trunc 63 | trimSuffix "-" }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "sevenhop.labels" -}}
{{- $root := index . 0 -}}
{{ include "sevenhop.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sevenhop
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sevenhop.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "sevenhop.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "sevenhop.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Where the release's service is reached, for agents. */}}
{{- define "sevenhop.url" -}}
{{- $scheme := ternary "https" "http" (not (empty .Values.web.tls.existingSecret)) -}}
{{- printf "%s://%s.%s.svc:%v" $scheme (include "sevenhop.fullname" .) .Release.Namespace .Values.service.port -}}
{{- end -}}

{{/* The component that serves HTTP to agents and people. */}}
{{- define "sevenhop.front" -}}
{{- ternary "edge" "service" (eq .Values.mode "scaled") -}}
{{- end -}}

{{- define "sevenhop.watches" -}}
{{- if or (eq .Values.mode "embedded") .Values.edge.enabled }}yes{{ end -}}
{{- end -}}

{{- define "sevenhop.elects" -}}
{{- if or (and (eq .Values.mode "embedded") (gt (int .Values.replicas) 1)) (and (eq .Values.mode "scaled") .Values.edge.enabled) }}yes{{ end -}}
{{- end -}}

{{/* sevenhop.yaml: `config`, and what other values decide. */}}
{{- define "sevenhop.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- with .Values.cluster }}{{ $_ := set $config "cluster" . }}{{ end -}}
{{- $web := default dict $config.web -}}
{{- $_ := set $web "listen" (printf "%s:%v" .Values.web.host .Values.web.port) -}}
{{- if .Values.web.tls.existingSecret -}}
{{- $_ := set $web "tls_certificate" "/etc/sevenhop/tls/tls.crt" -}}
{{- $_ := set $web "tls_key" "/etc/sevenhop/tls/tls.key" -}}
{{- end -}}
{{- $_ := set $config "web" $web -}}
{{- if and .Values.gpuAgent.enabled (not .Values.gpuAgent.server) -}}
{{- $push := default dict $config.gpu_push -}}
{{- $own := printf "%s/%s-gpu-agent" .Release.Namespace (include "sevenhop.fullname" .) -}}
{{- $_ := set $push "accounts" (append (default list $push.accounts) $own | uniq) -}}
{{- $_ := set $config "gpu_push" $push -}}
{{- end -}}
{{- $_ := set $config "state" "/var/lib/sevenhop" -}}
{{- range $what := list "rules" "playbooks" -}}
{{- if index $.Values $what -}}
{{- $own := printf "/etc/sevenhop/%s" $what -}}
{{- $shipped := printf "/usr/share/sevenhop/%s" $what -}}
{{- $_ := set $config $what (ternary (list $own) (list $shipped $own) $.Values.replaceShipped) -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Rights that approved plans need: of the actions of each playbook that is not off, shipped or in `playbooks`.
Gives a map of "group resource" to verbs, as YAML.
*/}}
{{- define "sevenhop.actionRights" -}}
{{- $table := .Files.Get "files/remediation.yaml" | fromYaml -}}
{{- $books := dict -}}
{{- if not (and .Values.playbooks .Values.replaceShipped) }}{{ $books = merge $books $table.playbooks }}{{ end -}}
{{- range $file, $text := .Values.playbooks -}}
{{- $book := fromYaml $text -}}
{{- if $book.id }}{{ $_ := set $books $book.id $book }}{{ end -}}
{{- end -}}
{{- $said := default dict (default dict .Values.config.remediation).playbooks -}}
{{- $rights := dict -}}
{{- range $id, $book := $books -}}
{{- $mode := (hasKey (default dict (index $said $id)) "mode") | ternary (default dict (index $said $id)).mode $book.mode -}}
{{- /* YAML reads `off` without quotes as false. */ -}}
{{- if not (has (toString $mode) (list "off" "false")) -}}
{{- range $action := $book.steps -}}
{{- range $right := index $table.actions $action -}}
{{- $key := printf "%s %s" $right.group $right.resource -}}
{{- $_ := set $rights $key (concat (default list (index $rights $key)) $right.verbs | uniq | sortAlpha) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $rights -}}
{{- end -}}

{{/* Given (rights, of nodes or not): rules of a role; nothing where there are none. */}}
{{- define "sevenhop.actionRules" -}}
{{- $nodes := index . 1 -}}
{{- range $key, $verbs := index . 0 -}}
{{- $at := splitList " " $key -}}
{{- if eq $nodes (eq (index $at 1) "nodes") }}
- apiGroups: [{{ index $at 0 | quote }}]
  resources: [{{ index $at 1 }}]
  verbs: [{{ join ", " $verbs }}]
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the schema cannot say, as sentences. */}}
{{- define "sevenhop.check" -}}
{{- $redis := (default dict .Values.config.redis).url -}}
{{- if and (eq .Values.mode "embedded") (gt (int .Values.replicas) 1) (not $redis) -}}
{{- fail "replicas: more than one needs a store that they share; give config.redis.url, or take one replica" -}}
{{- end -}}
{{- if and (eq .Values.mode "embedded") (gt (int .Values.replicas) 1) .Values.state.existingClaim -}}
{{- fail "replicas: more than one cannot share state.existingClaim; state is in config.redis then, so leave the claim empty" -}}
{{- end -}}
{{- if eq .Values.mode "scaled" -}}
{{- if not (default dict .Values.config.kafka).servers -}}
{{- fail "mode: scaled needs config.kafka.servers, such as [kafka-0.kafka:9092]" -}}
{{- end -}}
{{- if and .Values.worker.enabled (not $redis) -}}
{{- fail "mode: scaled with workers needs config.redis.url, such as redis://redis:6379/0" -}}
{{- end -}}
{{- if not (or .Values.edge.enabled .Values.worker.enabled) -}}
{{- fail "mode: scaled without edge and without worker runs nothing; enable one of them" -}}
{{- end -}}
{{- end -}}
{{- if and (or .Values.secrets.settings .Values.edge.secrets .Values.worker.secrets) (not .Values.secrets.existingSecret) -}}
{{- fail "secrets.settings, edge.secrets or worker.secrets names keys, so secrets.existingSecret must name the Secret that has them" -}}
{{- end -}}
{{- if and .Values.gpuAgent.enabled (not .Values.gpuAgent.server) (not (include "sevenhop.watches" .)) -}}
{{- fail "gpuAgent.enabled: this release has no edge to tell; give gpuAgent.server" -}}
{{- end -}}
{{- if and .Values.remediation.namespaces (not .Values.remediation.enabled) -}}
{{- fail "remediation.namespaces is given but remediation.enabled is false; nothing would be granted" -}}
{{- end -}}
{{- end -}}

{{/* Of one address, host:port or scheme://host:port/path: its port. */}}
{{- define "sevenhop.port" -}}
{{- $authority := splitList "/" (regexReplaceAll "^[a-z]+://" . "") | first -}}
{{- $port := regexFind ":[0-9]+$" $authority | trimPrefix ":" -}}
{{- if $port }}{{ $port }}
{{- else if hasPrefix "http://" . }}80
{{- else if regexMatch "^rediss?://" . }}6379
{{- else }}443
{{- end -}}
{{- end -}}

{{/* Ports of addresses in `config`, with spaces between; what a Secret names needs networkPolicy.egress.ports. */}}
{{- define "sevenhop.receiverPorts" -}}
{{- $ports := list -}}
{{- range $receiver := default dict .Values.config.receivers -}}
{{- range $address := list $receiver.url $receiver.base_url -}}
{{- with $address }}{{ $ports = append $ports (include "sevenhop.port" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $telemetry := default dict .Values.config.telemetry -}}
{{- $dcgm := default dict .Values.config.dcgm -}}
{{- range $address := concat (list $telemetry.traces (default dict $telemetry.heartbeat).url $dcgm.prometheus) (default list $dcgm.pages) -}}
{{- with $address }}{{ $ports = append $ports (include "sevenhop.port" .) }}{{ end -}}
{{- end -}}
{{- $ports | uniq | join " " -}}
{{- end -}}

{{- define "sevenhop.brokerPorts" -}}
{{- $ports := list -}}
{{- if eq .Values.mode "scaled" -}}
{{- range (default dict .Values.config.kafka).servers -}}
{{- $ports = append $ports (regexFind "[0-9]+$" . | default "9092") -}}
{{- end -}}
{{- end -}}
{{- with (default dict .Values.config.redis).url -}}
{{- $ports = append $ports (include "sevenhop.port" .) -}}
{{- end -}}
{{- range .Values.networkPolicy.egress.brokerPorts }}{{ $ports = append $ports (toString .) }}{{ end -}}
{{- $ports | uniq | join " " -}}
{{- end -}}
