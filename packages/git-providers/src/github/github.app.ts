import { createAppAuth } from '@octokit/auth-app';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { z } from 'zod';
import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import { type GithubPermissions, PERMISSION_LEVELS } from '../public-git-servers.js';
import { type CallBounds, GitProviderError } from '../git-provider.js';
import { isNotFound, providerErrorFromUpstream } from '../provider-errors.js';
import { requestBounds } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { appRefusal, keyRefused, messageOf, notInstalled } from './github.app-refusals.js';
import { type GithubRequestOptions, octokit, SILENT } from './github.client.js';

export interface GithubAppOptions {
  apiUrl: string;
  id: string;
  privateKey: string;
}

/** The App at one account. */
export interface GithubInstallation {
  id: number;
  owner: string;
  isSuspended: boolean;
  permissions: GithubPermissions;
}

export interface IssuedToken {
  token: string;
  /** Epoch milliseconds, as GitHub says. */
  expiresAt: number;
}

/** What a token is for: at most these repositories (names without their owner; null: all of the installation). */
export interface TokenScope {
  repositories: readonly string[] | null;
  permissions: GithubPermissions;
}

/** GitHub adds permissions and levels. */
const permissionsSchema = namedValues(z.string(), z.unknown()).transform((all): GithubPermissions => {
  const known = Object.entries(all).flatMap(([name, given]) => {
    const level = PERMISSION_LEVELS.find((each) => each === given);
    return level === undefined ? [] : [[name, level] as const];
  });
  return Object.fromEntries(known);
});

const installationSchema = z
  .object({
    id: z.number().int().positive(),
    account: z.object({ login: z.string().min(1).max(100) }),
    suspended_at: z.string().nullish(),
    permissions: permissionsSchema,
  })
  .transform(({ id, account, suspended_at: suspendedAt, permissions }): GithubInstallation => ({
    id,
    owner: account.login,
    isSuspended: suspendedAt !== null && suspendedAt !== undefined,
    permissions,
  }));

const issuedSchema = z
  .object({
    // 40 letters of old, some hundred since 2026.
    token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
    expires_at: z.iso.datetime({ offset: true }),
  })
  .transform(({ token, expires_at: end }): IssuedToken => ({ token, expiresAt: Date.parse(end) }));

const statusSchema = z.object({ status: z.number() });

/** The most that GitHub gives at once. */
const PAGE = 100;
const MAX_PAGES = 20;

/**
 * What GitHub lets an App itself do, by a key of the operator: find its installations, and issue tokens of them
 * (https://docs.github.com/en/rest/apps/apps). Keeps nothing.
 */
export class GithubApp {
  private readonly auth;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GithubAppOptions,
    private readonly now: () => number,
  ) {
    this.auth = createAppAuth({ appId: options.id, privateKey: options.privateKey, log: SILENT });
  }

  /** The installation that has a repository (`owner/name`); null where none has. @throws GitProviderError */
  async installationOf(repository: string, bounds: CallBounds): Promise<GithubInstallation | null> {
    const path = `/repos/${repository.split('/').map(encodeURIComponent).join('/')}/installation`;
    return await this.send(`GET ${path}`, {}, bounds, installationSchema);
  }

  /** The first two thousand. @throws GitProviderError */
  async installations(bounds: CallBounds): Promise<GithubInstallation[]> {
    const found: GithubInstallation[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const path = `GET /app/installations?per_page=${PAGE}&page=${page}`;
      const next = (await this.send(path, {}, bounds, z.array(installationSchema))) ?? [];
      found.push(...next);
      if (next.length < PAGE) {
        break;
      }
    }
    return found;
  }

  /** @throws GitProviderError with what its owner or the operator has to do where GitHub issues none */
  async issue(
    { id, owner }: GithubInstallation,
    { repositories, permissions }: TokenScope,
    bounds: CallBounds,
  ): Promise<IssuedToken> {
    const path = `POST /app/installations/${id}/access_tokens`;
    const body = { permissions, ...(repositories !== null && { repositories }) };
    const issued = await this.send(path, body, bounds, issuedSchema, owner);
    if (issued === null) {
      throw new GitProviderError('not_linked', { reason: notInstalled(owner) });
    }
    return issued;
  }

  /** Returns null for 404. */
  private async send<T>(
    route: string,
    body: object,
    bounds: CallBounds,
    schema: z.ZodType<T>,
    owner = '',
  ): Promise<T | null> {
    const request = octokit.request.defaults({
      baseUrl: this.options.apiUrl,
      request: { fetch: this.transport(bounds, owner) },
    });
    try {
      // The hook signs, and signs again by GitHub's clock where that differs from ours.
      const { data }: { data: unknown } = await this.auth.hook(request, route, { ...body });
      return requireFitting(schema, data, 'the answer to an App is another one');
    } catch (error) {
      if (statusSchema.safeParse(error).data?.status === 401) {
        throw keyRefused(messageOf(error));
      }
      const failure = providerErrorFromUpstream(error);
      if (isNotFound(failure)) {
        return null;
      }
      throw failure;
    }
  }

  private transport(bounds: CallBounds, owner: string): GithubRequestOptions['request']['fetch'] {
    return async (url, { method, headers, body } = {}) => {
      const now = this.now();
      const response = await this.http.fetch(url, { method, headers, body, ...requestBounds(bounds, now) });
      // What is refused with 401 says whether it was for the clock.
      if (response.ok || response.status === 401) {
        return response;
      }
      throw appRefusal(response, { text: await response.text(), token: '' }, owner, now);
    };
  }
}
