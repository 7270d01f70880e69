import type { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import type { InputProblem } from '@slipway/api/errors/problem-error.js';
import { parseGitHost } from '@slipway/git-providers/git-host.js';
import type { ProviderErrorCode, ProviderType } from '@slipway/git-providers/git-provider.js';
import { gitServerFor } from '@slipway/git-providers/git-servers.js';

export interface ProviderTokenInput {
  token?: string | null;
  host?: string | null;
  user_id?: string | null;
  refresh_token?: string | null;
  expires_at?: Date | null;
  installation?: boolean | null;
  login?: string | null;
}

/** A null entry removes a provider's token. */
export type ProviderTokenInputs = ReadonlyMap<ProviderType, ProviderTokenInput | null>;

export interface ProviderTokenWarning {
  provider: ProviderType;
  code: ProviderErrorCode;
  detail: string;
}

export interface NewToken {
  kind: 'set';
  provider: ProviderType;
  token: string;
  /** Canonical; null for the provider's default address. */
  host: string | null;
  accountId: string | null;
  renewal: NewRenewal | null;
  /** The operator's GitHub App in place of a token, which is empty. */
  installation?: { login: string | null } | null;
}

export interface NewRenewal {
  refreshToken: string;
  expiresAt: Date;
}

export type TokenChange =
  | NewToken
  | { kind: 'account'; provider: ProviderType; accountId: string }
  | { kind: 'remove'; provider: ProviderType };

export interface TokenPlan {
  changes: TokenChange[];
  /** Has the order of the input; if there is any, nothing may be changed. */
  problems: InputProblem[];
}

interface TokenPlanContext {
  allowlist: HostAllowlist;
  /** Canonical hosts; a provider without a stored token has no entry. */
  storedHosts: ReadonlyMap<ProviderType, string | null>;
  usable: readonly ProviderType[];
  /** Providers with a client of OAuth, whose tokens at the default address can be renewed. */
  renewable: readonly ProviderType[];
  now: number;
  /** Why the operator's GitHub App may not stand in for the user; null: it may. */
  standInProblem: string | null;
  /** Location of the map in the request, such as `['body', 'provider_tokens']`. */
  loc: readonly string[];
}

interface Step {
  change?: TokenChange;
  problems?: { member: keyof ProviderTokenInput; msg: string }[];
}

type HostChoice = { host: string | null } | { problem: string };

const MAX_TOKEN_BYTES = 8 * 1024;

/** One text for every refused host, so that it reveals nothing about what is behind the host. */
export const HOST_REFUSED =
  'This host is not allowed here: use the public service or a host that the operator has allowed, without user name, query or fragment.';
const HOST_NEEDS_TOKEN =
  'A token is only ever sent to the host it was given with: send the token together with its host.';

const ONLY_GITHUB = 'Only GitHub has installations: leave it out, or send a token.';
const INSTALLATION_ALONE = 'An installation stands in for a token: send one of the two.';
const LOGIN_NEEDS_INSTALLATION =
  'A login is for an installation that stands in: send it together with `installation: true`.';

const RENEWAL_NEEDS_TOKEN = 'A refresh token comes together with the token that it renews.';
const NOT_RENEWABLE =
  'No token of this host can be renewed: the operator has configured no client of OAuth for it. Leave it out, or send a token that does not expire.';

/** Decides, without asking a provider, what a client's `provider_tokens` change. */
export function planTokenChanges(inputs: ProviderTokenInputs, context: TokenPlanContext): TokenPlan {
  const plan: TokenPlan = { changes: [], problems: [] };
  for (const [provider, input] of inputs) {
    const step = input === null ? removal(provider) : entryStep(provider, input, context);
    plan.changes.push(...(step.change ? [step.change] : []));
    plan.problems.push(
      ...(step.problems ?? []).map(({ member, msg }) => ({
        loc: [...context.loc, provider, member],
        msg,
        type: 'value_error',
      })),
    );
  }
  return plan;
}

function removal(provider: ProviderType): Step {
  return { change: { kind: 'remove', provider } };
}

function entryStep(provider: ProviderType, input: ProviderTokenInput, context: TokenPlanContext): Step {
  if (input.installation === true) {
    return installationStep(provider, input, context);
  }
  if (unlessBlank(input.login) !== null) {
    return { problems: [{ member: 'login', msg: LOGIN_NEEDS_INSTALLATION }] };
  }
  const token = unlessBlank(input.token);
  return token === null
    ? keptTokenStep(provider, input, context)
    : newTokenStep(provider, token, input, context);
}

/** In place of a token; a login is what the user says, and gives no right. */
function installationStep(
  provider: ProviderType,
  input: ProviderTokenInput,
  { standInProblem }: TokenPlanContext,
): Step {
  const others = (['token', 'host', 'refresh_token', 'user_id'] as const).filter(
    (member) => unlessBlank(input[member]) !== null,
  );
  const login = unlessBlank(input.login);
  const msg = provider === 'github' ? standInProblem : ONLY_GITHUB;
  const problems: Step['problems'] = [
    ...(msg === null ? [] : [{ member: 'installation' as const, msg }]),
    ...others.map((member) => ({ member, msg: INSTALLATION_ALONE })),
  ];
  const renewal = { renewal: null, accountId: null, host: null };
  return problems.length > 0
    ? { problems }
    : { change: { kind: 'set', provider, token: '', ...renewal, installation: { login } } };
}

/** A blank token keeps what is stored, so a host beside it must be the stored one. */
function keptTokenStep(provider: ProviderType, input: ProviderTokenInput, context: TokenPlanContext): Step {
  if (unlessBlank(input.refresh_token) !== null) {
    return { problems: [{ member: 'refresh_token', msg: RENEWAL_NEEDS_TOKEN }] };
  }
  const hostInput = unlessBlank(input.host);
  if (hostInput !== null) {
    const choice = chooseHost(provider, hostInput, context.allowlist);
    if ('problem' in choice) {
      return { problems: [{ member: 'host', msg: choice.problem }] };
    }
    if (choice.host !== (context.storedHosts.get(provider) ?? null)) {
      return { problems: [{ member: 'host', msg: HOST_NEEDS_TOKEN }] };
    }
  }
  const accountId = unlessBlank(input.user_id);
  return accountId === null ? {} : { change: { kind: 'account', provider, accountId } };
}

function newTokenStep(
  provider: ProviderType,
  token: string,
  input: ProviderTokenInput,
  context: TokenPlanContext,
): Step {
  const hostInput = unlessBlank(input.host);
  const choice = hostInput === null ? { host: null } : chooseHost(provider, hostInput, context.allowlist);
  const problems: Step['problems'] = [];
  const tokenProblem = context.usable.includes(provider)
    ? // Whether there is a host decides the form of a Bitbucket token, even when that host is refused.
      tokenShapeProblem(provider, 'host' in choice ? choice.host : hostInput, token)
    : `The operator has not configured ${provider}: no token of it can be used here.`;
  if (tokenProblem !== null) {
    problems.push({ member: 'token', msg: tokenProblem });
  }
  if ('problem' in choice) {
    return { problems: [...problems, { member: 'host', msg: choice.problem }] };
  }
  const accountId = unlessBlank(input.user_id);
  const refreshToken = unlessBlank(input.refresh_token);
  if (refreshToken !== null && !(choice.host === null && context.renewable.includes(provider))) {
    problems.push({ member: 'refresh_token', msg: NOT_RENEWABLE });
  }
  // Where the client says no end, the first use finds out.
  const expiresAt = input.expires_at ?? new Date(context.now);
  const renewal = refreshToken === null ? null : { refreshToken, expiresAt };
  return { change: { kind: 'set', provider, token, host: choice.host, accountId, renewal }, problems };
}

function chooseHost(provider: ProviderType, input: string, allowlist: HostAllowlist): HostChoice {
  if (gitServerFor(provider, input) === null) {
    return { problem: `The operator sets the host of ${provider}: leave it out.` };
  }
  const parsed = parseGitHost(input, provider, allowlist);
  return parsed === 'refused' ? { problem: HOST_REFUSED } : parsed;
}

function unlessBlank(text: string | null | undefined): string | null {
  return (text ?? '').trim() === '' ? null : (text ?? null);
}

/** Blank text keeps the stored token. */
export const TOKEN_FORM = { pattern: String.raw`^(?:\s*|[!-~]+)$`, maxLength: MAX_TOKEN_BYTES };

/** A sentence with the right form for a text that can be no refresh token, or null. */
export function refreshTokenProblem(text: string): string | null {
  return text.trim() === '' || (/^[\x21-\x7e]+$/.test(text) && text.length <= MAX_TOKEN_BYTES) ? null : FORM;
}

const FORM =
  'A refresh token has at most 8192 ASCII letters, digits and punctuation, without white space or control characters.';

/**
 * A sentence with the right form for a token that can never work, or null. It contains no part of the token, and does
 * not judge lengths, since formats grow.
 */
export function tokenShapeProblem(provider: ProviderType, host: string | null, token: string): string | null {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    return 'A token consists of ASCII letters, digits and punctuation, without white space or control characters.';
  }
  if (token.length > MAX_TOKEN_BYTES) {
    return 'A token has at most 8192 bytes.';
  }
  return gitServerFor(provider, host)?.tokenProblem(token) ?? null;
}
