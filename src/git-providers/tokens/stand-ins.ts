import { Injectable } from '@nestjs/common';
import { type GitClaims, IdentityRepository } from '../../auth/oidc/identity.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import type { StandInRule } from '../../config/github-app-config.js';

const DAY_MS = 86_400_000;

/** For what of a user the operator's GitHub App stands in. */
export interface StandIn {
  /** At GitHub, as the issuer says; null: it does not. */
  login: string | null;
  /** Patterns of repositories (`owner/*`, `owner/name`, lower case); `*` stands for all. None: for nothing. */
  repositories: readonly string[];
}

/**
 * Whom installations of the GitHub App stand in for (`GITHUB_APP_FOR`): asked at each use, so that who leaves a group, reads
 * only or is disabled loses it.
 */
@Injectable()
export class StandIns {
  constructor(
    private readonly identities: IdentityRepository,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  async of(userId: string): Promise<StandIn> {
    const rules = this.config.git.githubApp?.standsInFor ?? [];
    const member = rules.length === 0 ? null : await this.member(userId);
    return member === null
      ? { login: null, repositories: [] }
      : { login: member.login, repositories: rules.flatMap((rule) => patternsOf(rule, member.groups)) };
  }

  /** Why the App stands in for the user nowhere; null: it does somewhere. */
  async problem(userId: string): Promise<string | null> {
    if (this.config.git.githubApp === null) {
      return 'The operator has no GitHub App (GITHUB_APP_ID): store a token of your own.';
    }
    return (await this.of(userId)).repositories.length > 0
      ? null
      : 'The GitHub App of the operator does not stand in for you (GITHUB_APP_FOR): ask the operator for it, or store a token of your own.';
  }

  private async member(userId: string): Promise<Omit<GitClaims, 'issued_at'> | null> {
    const { oidc } = this.config;
    const since = new Date(this.clock.now() - (oidc?.keyMaxDays ?? 0) * DAY_MS);
    return await this.identities.gitMember(userId, oidc?.issuer ?? null, since);
  }
}

function patternsOf(rule: StandInRule, groups: readonly string[]): string[] {
  if ('members' in rule) {
    return ['*'];
  }
  return groups.includes(rule.group) ? [rule.repositories] : [];
}

/** @param repository `owner/name` */
export function mayStandIn({ repositories }: Pick<StandIn, 'repositories'>, repository: string): boolean {
  const name = repository.toLowerCase();
  const [owner] = name.split('/', 1);
  return repositories.some((pattern) => pattern === '*' || pattern === name || pattern === `${owner}/*`);
}
