{{- define "slipway.labels" -}}
app.kubernetes.io/name: slipway
app.kubernetes.io/part-of: slipway
{{- end }}

{{- define "slipway.egressLabels" -}}
app.kubernetes.io/name: slipway-egress
app.kubernetes.io/part-of: slipway
{{- end }}

{{- define "slipway.egressPriorityClass" -}}
{{ .Values.egressProxy.priorityClassName | default (printf "%s-egress" .Values.sandboxes.namespace) }}
{{- end }}

{{- define "slipway.config" -}}
{{- $config := dict
  "SANDBOX_BACKEND" "kubernetes"
  "SANDBOX_NAMESPACE" .Values.sandboxes.namespace
  "INSTANCE_ID" .Values.instanceId
  "SANDBOX_CALLBACK_URL" (.Values.sandboxes.callbackUrl | default (printf "http://slipway.%s.svc:3000" .Release.Namespace))
  "SHUTDOWN_DELAY_SECONDS" (.Values.shutdownDelaySeconds | toString)
  "METRICS_PORT" "9464"
  "LOG_FORMAT" "json" }}
{{- with .Values.sandboxes.podTemplate }}{{ $_ := set $config "SANDBOX_POD_TEMPLATE" (toJson .) }}{{ end }}
{{- with .Values.sandboxes.image }}{{ $_ := set $config "SANDBOX_IMAGE" . }}{{ end }}
{{- if .Values.ingress.enabled }}
{{- $_ := set $config "PUBLIC_URL" (printf "https://%s" .Values.ingress.host) }}
{{- $_ := set $config "SANDBOX_EXPOSE" "hosts" }}
{{- $_ := set $config "SANDBOX_PORTS_URL" (printf "https://%s" .Values.ingress.appsDomain) }}
{{- end }}
{{- range $name, $value := .Values.config }}{{ $_ := set $config $name ($value | toString) }}{{ end }}
{{- toYaml $config }}
{{- end }}
