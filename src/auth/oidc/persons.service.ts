import { Injectable } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { DomainError, unknownId } from '../../common/errors/domain-error.js';
import { requireScope, SCOPES, scopesWithin } from '../../common/scopes.js';
import { AppConfig } from '../../config/app-config.js';
import { standInGroups } from '../../config/github-app-config.js';
import type { Role } from '../../config/oidc-config.js';
import { AccessChanges } from '../access-changes.js';
import type { AuthUser } from '../auth.decorators.js';
import { notForSomeRepositories } from '../key-repositories.js';
import { serviceSignsIn, UserRepository } from '../user.repository.js';
import {
  type Identity,
  IdentityRepository,
  type KnownPerson,
  type PersonRefusal,
} from './identity.repository.js';
import { OidcIssuer } from './oidc.issuer.js';
import { type Claims, mappedRole, type Person, personOf } from './person-claims.js';
import { decideRole, isRole } from './role-decision.js';

const REFUSALS: Record<PersonRefusal, string> = {
  address_taken:
    'Another user has this email address. Sign in with a key of that user and link the sign-in under Settings, or ask the operator to run: slipway users link.',
  no_role:
    'The identity provider lets you in, but no group of yours has a role here. Ask an administrator to add you to one.',
  groups_overage:
    'The identity provider left your groups out of the token because there are too many. Ask its administrator to send assigned groups or app roles only.',
};
export const REMOVED = 'Your user was removed here. An administrator can let you in again.';
export const DISABLED = 'Your user is disabled here. An administrator can enable it.';
export const LINKED_ELSEWHERE = 'This sign-in belongs to a user already.';
export const ONLY_WAY_IN =
  'This is the only way in for you, so make an API key first; or you came in by it, and only the operator takes it away.';

export interface Said {
  issuer: string;
  /** Null where they were left out. */
  groups: string[] | null;
  /** What the map gives for these groups; null for nothing. */
  role: Role | null;
  /** Whether the map decides, which then is the only one that gives a role. */
  rolesAreMapped: boolean;
  lastSeenAt: Date;
}

export interface SignedIn {
  identityId: string;
  user: Omit<AuthUser, 'keyId'>;
}

/** People and programs of the issuer: (issuer, subject) is a user, made at first sight. */
@Injectable()
export class PersonsService {
  constructor(
    private readonly issuer: OidcIssuer,
    private readonly identities: IdentityRepository,
    private readonly users: UserRepository,
    private readonly clock: Clock,
    private readonly changes: AccessChanges,
    private readonly config: AppConfig,
  ) {}

  /**
   * The user of verified claims, with the role that they give.
   * @throws DomainError forbidden, no_role, groups_overage, address_taken with what to do
   */
  async signIn(claims: Claims): Promise<SignedIn> {
    const person = this.person(claims);
    const known = (await this.identities.findPerson(person)) ?? (await this.add(person));
    if (known.email === null) {
      throw new DomainError('forbidden', REMOVED);
    }
    if (known.is_disabled) {
      throw new DomainError('forbidden', DISABLED);
    }
    const decided = decideRole(person, true, this.issuer.required);
    const role = person.issuedAt < known.role_at ? 'unchanged' : decided;
    if ((isRole(role) || role === 'no_role') && (await this.identities.decide(known, person, role))) {
      this.changes.tell(known.user_id);
      return this.signIn(claims);
    }
    if (role === 'no_role' || (role === 'unchanged' && !known.has_role)) {
      throw new DomainError('no_role', REFUSALS.no_role);
    }
    await this.identities.see(known, person, new Date(this.clock.now()));
    await this.noteGit(known, person);
    return { identityId: known.identity_id, user: userOf(known, known.email) };
  }

  /**
   * A linked person may do all that the user may, so the key of a link must be able to as well.
   * @throws DomainError forbidden for a service, insufficient_scope, unauthorized
   */
  async requireLinkable({
    id,
    scopes,
    repositories,
  }: Pick<AuthUser, 'id' | 'scopes' | 'repositories'>): Promise<void> {
    const user = await this.users.findOneBy({ id });
    if (user === null) {
      throw new DomainError('unauthorized', 'Unauthorized');
    }
    if (user.kind === 'service') {
      throw serviceSignsIn();
    }
    if (repositories !== null) {
      throw notForSomeRepositories(repositories);
    }
    SCOPES.filter((scope) => scope !== 'admin' || user.isAdmin).forEach((scope) =>
      requireScope({ scopes }, scope),
    );
  }

  /** Lets a user sign in by the issuer. @throws DomainError conflict for a person who is linked already */
  async link(userId: string, claims: Claims): Promise<SignedIn> {
    const person = this.person(claims);
    if (!(await this.identities.link(userId, person, new Date(this.clock.now())))) {
      throw new DomainError('conflict', LINKED_ELSEWHERE);
    }
    return this.signIn(claims);
  }

  /** What the issuer said last of those who are persons of an issuer, by the users' ids. */
  async saidOf(userIds: readonly string[]): Promise<Map<string, Said>> {
    const map = this.issuer.roleMap;
    const seen = await this.identities.lastSeenOf(userIds);
    return new Map(
      [...seen].map(([userId, { issuer, groups, lastSeenAt }]) => [
        userId,
        { issuer, groups, role: mappedRole(groups ?? [], map), rolesAreMapped: map.size > 0, lastSeenAt },
      ]),
    );
  }

  async listOf(userId: string): Promise<Identity[]> {
    return this.identities.listOf(userId);
  }

  /** @throws DomainError not_found, conflict for the only way in */
  async unlink(userId: string, id: string): Promise<void> {
    switch (await this.identities.unlink(userId, id, new Date(this.clock.now()))) {
      case 'unknown':
        throw unknownId('identity');
      case 'only_way_in':
        throw new DomainError('conflict', ONLY_WAY_IN);
      case 'unlinked':
        this.changes.tell(userId);
    }
  }

  /** Throws as `IdentityRepository.letIn`. @throws DomainError not_found where no removed user of that id is kept out */
  async restore(userId: string, by: string): Promise<void> {
    if (!(await this.identities.letIn(userId, by))) {
      throw new DomainError('not_found', 'No removed user with this id is kept out.');
    }
  }

  /** Once for each token: the newest counts, also where it says the same as one before. */
  private async noteGit(known: KnownPerson, person: Person): Promise<void> {
    const { groups, githubLogin: login, issuedAt } = person;
    const { githubApp } = this.config.git;
    const isKnown = known.git !== null && issuedAt <= new Date(known.git.issued_at);
    if (githubApp === null || groups === null || isKnown) {
      return;
    }
    const named = standInGroups(githubApp).filter((group) => groups.includes(group));
    const noted = { login, groups: [...new Set(named)].toSorted(), issued_at: issuedAt.toISOString() };
    await this.identities.noteGit(known, noted);
  }

  private person(claims: Claims): Person {
    const person = personOf(claims, this.issuer.required);
    if (person === null) {
      throw new DomainError('unauthorized', 'Unauthorized: the token names nobody.');
    }
    return person;
  }

  private async add(person: Person): Promise<KnownPerson> {
    const now = new Date(this.clock.now());
    const added = await this.identities.addPerson(
      person,
      decideRole(person, false, this.issuer.required),
      now,
    );
    if (typeof added === 'string') {
      throw new DomainError(added, REFUSALS[added]);
    }
    return added;
  }
}

function userOf(known: KnownPerson, email: string): SignedIn['user'] {
  const { user_id: id, is_admin: isAdmin, reads_only: readsOnly } = known;
  return { id, email, isAdmin, scopes: scopesWithin(null, readsOnly), repositories: null };
}
