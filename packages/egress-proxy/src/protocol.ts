import { z } from 'zod';

/**
 * What the service tells an egress proxy about a sandbox, and what it is told. The proxy asks over HTTP with the key
 * that both were started with, and names the sandbox by the credential that the sandbox gave it. Either may be of the release
 * before: what is new is optional, and who does not know it lets less pass, and puts less in (docs/adr/0086).
 */
export const EGRESS_PATHS = {
  /** GET: the policy of the sandbox whose credential is in `CREDENTIAL_HEADER`; 404 where no running one has it. */
  policy: '/api/v1/egress-proxy/policy',
  /** POST: uses up what the owner allowed once; 200 with `{allowed}`. */
  once: '/api/v1/egress-proxy/once',
  /** POST: what sandboxes asked for since the last report; 204. */
  reports: '/api/v1/egress-proxy/reports',
} as const;

/** The credential of a sandbox, as it stands in the proxy's address: `http://ID:CREDENTIAL@proxy`. */
export const CREDENTIAL_HEADER = 'x-slipway-sandbox-credential';

/** Why a request was refused. */
export const DENIALS = ['rule', 'address', 'credential', 'method', 'path', 'protocol'] as const;
export type Denial = (typeof DENIALS)[number];

/** Of a name in settings, in characters. */
export const MAX_MODEL_NAME = 1_024;

export const PHASES = ['setup', 'agent'] as const;
export type EgressPhase = (typeof PHASES)[number];
/** The one in which a proxy trusts what it knows least. */
const phaseSchema = z.enum(PHASES).catch('setup');

/** Those that can be read: what is new in another may narrow it. */
function readable<T>(entry: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(z.unknown()).transform((entries) =>
    entries.flatMap((each) => {
      const { data } = entry.safeParse(each);
      return data === undefined ? [] : [data];
    }),
  );
}

/** A host by its name in lower case and punycode, `*.name` for names below it, or an address. */
export const egressHostSchema = z.object({
  host: z.string().min(1).max(253),
  /** Without: 80 and 443. */
  port: z.int().min(1).max(65_535).optional(),
  /** In upper case. Without: all. */
  methods: z.array(z.string()).optional(),
  /** Exact, or prefixes where they end in `*`. Without: all. */
  paths: z.array(z.string()).optional(),
  /** Besides `paths`: `*` stands for one character or more, and a query is compared too. */
  patterns: z.array(z.string()).optional(),
});
export type EgressHost = z.infer<typeof egressHostSchema>;

const placeSchema = z.strictObject({ ...egressHostSchema.shape, http: z.boolean().optional() });

/** One place's rules, presets expanded. `deny` is stronger than `allow`, and what neither names follows `default`. */
const rulesSchema = z.object({
  default: z.enum(['allow', 'deny']).catch('deny'),
  /** `isOwn`: with a credential of the sandbox or none, as a stranger's would carry data to their account. */
  allow: readable(placeSchema.extend({ isOwn: z.boolean().optional() })),
  deny: z.array(egressHostSchema.pick({ host: true, port: true })),
  /** The owner may allow single requests that it refuses; without, it refuses them whatever is allowed once. */
  yieldsOnce: z.boolean().optional(),
});
export type EgressRules = z.infer<typeof rulesSchema>;
export type AllowedHost = EgressRules['allow'][number];

/** A credential that stays outside: where a placeholder becomes its value. */
export const egressInjectionSchema = z.strictObject({
  placeholder: z.string().min(16),
  value: z.string().min(1),
  /** Towards these alone. `http` only where an entry says so. */
  hosts: z.array(placeSchema).min(1),
  /** Names of headers in lower case; in `authorization` inside of Basic credentials too. */
  headers: z.array(z.string()),
  /** What the whole of such a header has to be, with `{}` for the placeholder. Without: it may stand anywhere. */
  format: z.string().optional(),
  /** Members of the query. */
  query: z.array(z.string()).optional(),
  /** The model whose key it is, as its user named it. */
  model: z.string().optional(),
});
export type EgressInjection = z.infer<typeof egressInjectionSchema>;
export type InjectionPlace = EgressInjection['hosts'][number];

export const policySchema = z.object({
  sandbox: z.string(),
  phase: phaseSchema,
  /** A request passes where each layer lets it pass; without layers everything does. */
  layers: z.array(rulesSchema),
  injections: readable(egressInjectionSchema),
  /** Networks and `address:port` that may be dialled besides public addresses. */
  networks: z.array(z.string()),
  /** The sandbox's own certificate authority, in PEM. */
  authority: z.object({ certificate: z.string(), key: z.string() }),
  /** Hosts (`name` or `name:port`) that the owner allowed for one request; the proxy asks `once` before it passes one. */
  once: z.array(z.string()),
  /** For how long the proxy may go on with this answer, in seconds. */
  maxAgeSeconds: z.int().min(0).max(60),
});
export type EgressPolicy = z.infer<typeof policySchema>;

export const onceSchema = z.object({ sandbox: z.string(), host: z.string().max(260) });
export const onceAnswerSchema = z.object({ allowed: z.boolean() });

/** A request, or a tunnel that was passed through. Has no values of credentials. */
export const reportedRequestSchema = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  host: z.string().max(260),
  port: z.int().min(0).max(65_535),
  method: z.string().max(32).nullable(),
  path: z.string().max(1_024).nullable(),
  /** Null: it passed. */
  denied: z.enum(DENIALS).nullable().catch('rule'),
  /** The rule that decided, as it was written; null where only a default did. */
  rule: z.string().max(300).nullable(),
  phase: phaseSchema,
  /** Of the answer; null for tunnels and for what was refused. */
  status: z.int().nullable(),
  sentBytes: z.int().min(0),
  receivedBytes: z.int().min(0),
  durationMs: z.int().min(0),
});
export type ReportedRequest = z.infer<typeof reportedRequestSchema>;

const tokens = z.int().min(0).max(10_000_000_000);

/** A call of a model that a credential of the sandbox was put in for, by what its answer says. */
export const reportedCallSchema = z.object({
  /** Of this proxy's calls for this sandbox, in their order, from 1 on: those up to a number are not counted again. */
  number: z.int().min(1),
  at: z.iso.datetime(),
  /** The host that answered. */
  host: z.string().max(260),
  /** Whose key it was, as its user named it; null for the credential of a secret. */
  model: z.string().max(MAX_MODEL_NAME).nullable(),
  /** The model that the request names; null where its body names none. */
  asked: z.string().max(MAX_MODEL_NAME).nullable(),
  /** The model that answered, as it says; null where it does not. */
  answeredBy: z.string().max(MAX_MODEL_NAME).nullable(),
  /** Tokens, with those from the cache of the provider and into it. */
  input: tokens,
  output: tokens,
  cacheRead: tokens,
  cacheWrite: tokens,
  /** In USD, where the answer says it. */
  cost: z.number().min(0).max(1_000_000).nullable(),
});
export type ReportedCall = z.infer<typeof reportedCallSchema>;

export const MAX_REPORTED = 500;
export const reportsSchema = z.object({
  /** Which of several proxies reports: a new one numbers its calls anew. */
  proxy: z.uuid().optional(),
  reports: z
    .array(
      z.object({
        sandbox: z.string(),
        requests: z.array(reportedRequestSchema).max(MAX_REPORTED),
        calls: z.array(reportedCallSchema).max(MAX_REPORTED).default([]),
      }),
    )
    .max(MAX_REPORTED),
});
export type EgressReports = z.infer<typeof reportsSchema>;
