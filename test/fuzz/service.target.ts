import { text } from '../system/journeys/support/api-client.js';
import { countOperations, type FuzzTarget, WantedFailure } from './fuzz-target.js';
import type { FuzzWorld } from './support/fuzz-world.js';

/** What openapi.json cannot say of what is accepted, and what it answers on purpose. */
const WANTED: WantedFailure[] = [
  {
    checks: ['UndefinedStatusCode', 'AcceptedNegativeData'],
    operations: '.*',
    statuses: [431],
    answer: 'Address and headers of a request may have 65536 bytes together',
    because:
      'Parameters beyond their bounds make the head too long, which is refused before any route is known.',
  },
  {
    checks: ['AcceptedNegativeData', 'RejectedPositiveData'],
    operations: '.*',
    statuses: [413],
    answer: 'The request body may have at most',
    because: 'A body beyond the bounds of all bodies is refused before its own rules are looked at.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '.*',
    statuses: [422],
    answer: 'Expected text without NUL characters',
    because:
      'PostgreSQL stores no NUL, so no text may have one; a pattern at each text would hide the others.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/(app-conversations|app-conversations/stream-start|sandboxes)',
    statuses: [422],
    answer: 'This key was used for a request with another content',
    because: 'An Idempotency-Key belongs to the request that it came with first.',
  },
  {
    checks: ['AcceptedNegativeData', 'RejectedPositiveData'],
    operations: 'POST /api/v1/sandboxes',
    statuses: [410],
    because: 'A key whose sandbox is deleted says so, whatever else the request has.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/app-conversations(/stream-start)?',
    statuses: [422],
    answer: 'beside suggested_task',
    because: 'Two members exclude each other, and generated clients have no use for an `anyOf` of both.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /oauth/device/token',
    statuses: [400],
    because: 'RFC 8628 answers 400 for as long as nobody has approved a login.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/api-keys',
    statuses: [422],
    answer: 'Expected a time in the future',
    because: 'JSON Schema does not know what time it is.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'GET .*',
    statuses: [422],
    answer: 'Expected the next_page_id of a page of this list',
    because: 'Page ids come from the service; a list takes only its own.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'DELETE /api/v1/sandboxes/\\{id\\}',
    statuses: [422],
    answer: 'Expected the same id as in the path',
    because: 'OpenAPI cannot compare two parameters.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/users',
    statuses: [422],
    answer: 'required of a person',
    because:
      'The kind decides whether the address may be left out; a schema that says so is a choice, which generators read badly.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'DELETE /api/v1/users/\\{id\\}',
    statuses: [422],
    answer: 'Expected the id of another user',
    because: 'What a parameter names is there or not.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST|PATCH) /api/v1/webhook-endpoints(/\\{id\\})?',
    statuses: [422],
    answer: '"url"',
    because: 'WEBHOOK_HOST_ALLOWLIST decides, and only the operator knows it.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST|DELETE) /api/v1/push/subscriptions',
    statuses: [422],
    answer: '"endpoint"|as a browser gives them',
    because: 'The same decides here, and JSON Schema does not know which bytes are a public key.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST /api/secrets|PUT /api/secrets/\\{name\\}|PUT /api/v1/secrets/\\{secret_id\\})',
    statuses: [400],
    answer: 'exists already',
    because: 'Clients of these routes know 400 for a name that is taken.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST|PUT) /api/(v1/|organizations/\\{organization_id\\}/)?secrets(/\\{\\w+\\})?',
    statuses: [422],
    answer:
      'a host such as|never sent|of one line|tells nothing of the value|no other secret has|secrets with hosts',
    because: 'JSON Schema cannot parse hosts, nor tell what is sent from what signs.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations:
      'POST /api/v1/sandboxes/\\{id\\}/egress/allow|(POST|PATCH) /api/(v1/)?(settings|app-conversations|organizations/\\{organization_id\\}/settings).*',
    statuses: [422],
    answer: '"host"|"sandbox_egress"|"egress"',
    because: 'JSON Schema cannot parse hosts, and knows no lists of them.',
  },
  {
    checks: ['AcceptedNegativeData'],
    operations: '.*',
    flags: true,
    because: 'Clients write true and false in other ways too, which are taken and not recommended.',
  },
  {
    checks: ['AcceptedNegativeData'],
    operations: 'POST /api/(v1/)?settings',
    message: 'provider_tokens_set',
    because: 'The member is shown in responses; whatever a form sends back in its place is ignored.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/((v1/)?settings|add-git-providers|v1/secrets/git-providers)',
    statuses: [422],
    answer: '"provider_tokens","\\w+","(token|host|installation|login|user_id|refresh_token)"',
    because:
      'Each provider has its forms of tokens, the operator lists its hosts and whom an App stands in for, and members exclude each other.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations:
      '(POST|PATCH) /api/(v1/)?(settings|app-conversations|organizations/\\{organization_id\\}/settings).*',
    statuses: [422],
    answer: '"repositories_read"',
    because: 'The operator says which may be read, and a user has a token for them or not.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations:
      'POST /api/((v1/)?settings|add-git-providers|v1/secrets/git-providers|v1/settings/profiles/\\{name\\}|cloud-proxy)',
    statuses: [422],
    answer: 'an earlier element has this one|a valid host after the scheme|a user name or password in it',
    because: 'JSON Schema cannot compare elements by a member, nor parse an address.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/(app-conversations(/stream-start)?|(app-)?conversations/\\{id\\}/[a-z-]+)',
    statuses: [422],
    answer:
      'a message that says something|a data URL of an image|"(text|image_urls)"\\],"msg":"This member is required',
    because: 'What a part of a message needs depends on its type, and blank parts may stand beside others.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/app-conversations(/stream-start)?',
    statuses: [422],
    answer:
      'Expected (the (id|name) of a [a-z ]+ that exists|a provider that is configured here|CodeActAgent( or acp:[a-z0-9-]+)*\\.)',
    because: 'What a body names is there or not, and the operator configures providers and agents.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST /api/automation/v1/(preset/prompt|validate)|PATCH /api/automation/v1/\\{id\\})',
    statuses: [422],
    answer:
      '"trigger",|either a prompt or tasks|a prompt, or tasks|five fields of cron|a JMESPath expression|at most \\d+ placeholders|the https address of a repository|the name of a branch',
    because: 'JSON Schema knows neither cron nor JMESPath, and what a trigger needs depends on its type.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(POST|PATCH) /api/automation/v1/webhooks(/\\{id\\})?',
    statuses: [422],
    answer: 'a JMESPath expression',
    because: 'JSON Schema does not know JMESPath.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'GET /api/v1/conversation/\\{id\\}/events/stream',
    statuses: [422],
    answer: 'Expected the id of an event of this stream',
    because: 'A stream goes on after an event that it has, and only the conversation knows which those are.',
  },
  {
    checks: ['JsonSchemaError'],
    operations: 'GET /api/v1/conversation/\\{id\\}/events/stream',
    statuses: [200],
    message: 'SSE event violates schema',
    because: 'OpenAPI 3.1 describes a stream as one text; Schemathesis compares each event with that.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/app-conversations/\\{id\\}/switch_acp_model',
    statuses: [400],
    because: 'The conversation has an agent of ours, and clients know 400 for that.',
  },
  {
    checks: ['RejectedPositiveData'],
    operations: '(PUT|DELETE) /api/(v1/)?secrets/\\{(secret_id|name)\\}',
    statuses: [422],
    answer: '"path"',
    because: 'Sequences put ids of other things into the path, which do not match its pattern.',
  },
  {
    checks: ['UnsupportedMethodResponse'],
    operations: '(GET /api/v1/users/(git-info|me)|(POST|DELETE) /api/v1/secrets/git-providers)',
    statuses: [422],
    because: 'For other methods the last part of the path is an id.',
  },
  {
    checks: ['UnsupportedMethodResponse'],
    operations: '(GET|POST) /api/automation/v1/(capabilities|tags|validate|webhooks)',
    statuses: [422],
    because: 'For PATCH and DELETE the last part of the path is an id.',
  },
  {
    checks: ['ServerError', 'UnsupportedMethodResponse'],
    operations: 'GET /api/automation/.*',
    statuses: [501],
    answer: '"not_offered"',
    because:
      "Operations of the peer's document that are not offered say so, and stand in no document of ours.",
  },
  {
    checks: ['RejectedPositiveData'],
    operations: 'POST /api/v1/settings/profiles/\\{name\\}',
    statuses: [422],
    answer: 'Expected at most 16 KiB',
    because: 'OpenAPI cannot say how large an object may be in all.',
  },
];

/** The service as an administrator sees it, who may call every operation. */
export async function serviceTarget({ journey }: FuzzWorld): Promise<FuzzTarget> {
  const { admin } = journey;
  const own = [await admin.get('/api/v1/users/me'), await admin.get('/api/v1/api-keys')].flat();
  return {
    name: 'service',
    document: `${journey.url}/openapi.json`,
    operations: countOperations(await admin.get('/openapi.json')),
    url: journey.url,
    key: journey.adminKey,
    checks: [
      'not_a_server_error',
      'status_code_conformance',
      'content_type_conformance',
      'response_headers_conformance',
      'response_schema_conformance',
      'negative_data_rejection',
      'positive_data_acceptance',
      'unsupported_method',
      'ignored_auth',
      'use_after_free',
      'ensure_resource_availability',
    ],
    refusals: [401, 403, 404, 409, 410, 429],
    wanted: WANTED,
    kept: own.map((one) => text(one, 'id').toLowerCase().replaceAll('-', '')),
    bodies: {},
  };
}
