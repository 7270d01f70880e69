import type { OidcConfig, Role } from '../../config/oidc-config.js';
import { mappedRole, type Person } from './person-claims.js';

type RoleRules = Pick<OidcConfig, 'roleMap' | 'defaultRole'>;

/** A role, `unchanged` for who is known already, or why the caller is refused. */
export type RoleDecision = Role | 'unchanged' | 'groups_overage' | 'no_role';

/**
 * The role that a token gives. Without a map the issuer says nothing of roles, so a known person keeps theirs. A program
 * gets none by default, and keeps what an administrator gave it.
 */
export function decideRole(
  { groups, client }: Pick<Person, 'groups' | 'client'>,
  isKnown: boolean,
  { roleMap, defaultRole }: RoleRules,
): RoleDecision {
  if (groups === null) {
    return isKnown ? 'unchanged' : 'groups_overage';
  }
  const mapped = mappedRole(groups, roleMap);
  if (mapped !== null) {
    return mapped;
  }
  if (client !== null || (isKnown && roleMap.size === 0)) {
    return isKnown ? 'unchanged' : 'no_role';
  }
  return defaultRole === 'none' ? 'no_role' : defaultRole;
}

export function isRole(decision: RoleDecision): decision is Role {
  return decision === 'admin' || decision === 'member' || decision === 'viewer';
}
