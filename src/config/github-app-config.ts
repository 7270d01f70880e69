import { createPrivateKey } from 'node:crypto';
import { type GithubPermissions, PERMISSION_LEVELS } from '@slipway/git-providers/public-git-servers.js';
import { commaList, FromVariable, MatchingVariable, Satisfies } from '@slipway/configuration/variables.js';

/** Of people of an enterprise, they end with `_` and its short name. */
export function isGithubLogin(text: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,99}$/i.test(text);
}

/** Who may be stood in for: all members, or those of groups, each for the repositories of its patterns. */
export type StandInRule = { members: true } | { group: string; repositories: string };

const PERMISSIONS =
  'must be a comma list of permissions of repositories, such as workflows:write,packages:read';
const RULES = 'must be none, members, or a comma list of group=owner/* and group=owner/name';
/** Those reach beyond the one repository of a token. */
const OF_ORGANIZATIONS = /^(organization_.*|members|team_discussions|enterprise_.*)$/;

/** Returns the text where it is no such list, for the rule to refuse. */
function parsePermissions(text: string): GithubPermissions | string {
  const entries = commaList(text).map((entry) => {
    const [, name = '', level] = /^([a-z_]{1,64}):(\w+)$/.exec(entry) ?? [];
    const known = PERMISSION_LEVELS.find((each) => each === level);
    return known === undefined || OF_ORGANIZATIONS.test(name) ? null : ([name, known] as const);
  });
  return entries.every((entry) => entry !== null) ? Object.fromEntries(entries) : text;
}

/** Groups may contain `=`. Returns null for what is no such list. */
function parseRules(text: string): StandInRule[] | null {
  if (text === 'none') {
    return [];
  }
  const rules = commaList(text).map((entry): StandInRule | null => {
    const end = entry.lastIndexOf('=');
    const group = entry.slice(0, end).trim();
    const repositories = entry
      .slice(end + 1)
      .trim()
      .toLowerCase();
    if (entry === 'members') {
      return { members: true };
    }
    return end > 0 && group !== '' && /^[a-z0-9_-]+\/(\*|[\w.-]+)$/.test(repositories)
      ? { group, repositories }
      : null;
  });
  return rules.every((rule) => rule !== null) ? rules : null;
}

/** GitHub gives out PEM; in a variable its lines often end with `\n` in letters. */
function pem(text: string): string {
  return text.replaceAll('\\n', '\n');
}

function isPrivateKey(text: unknown): boolean {
  try {
    return createPrivateKey(String(text)).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

function hasApp({ id }: GithubAppConfig): boolean {
  return id !== null;
}

/** The operator's GitHub App: with its installations, agents work in repositories without tokens of users. */
export class GithubAppConfig {
  @MatchingVariable(
    'GITHUB_APP_ID',
    'Id of a GitHub App at `GITHUB_API_URL`, whose installations stand in for users without a token of their own (`GITHUB_APP_FOR`). By default there is none.',
    /^\d{1,20}$/,
    'must be the id of the App, a number',
  )
  id: string;

  @FromVariable(
    'GITHUB_APP_PRIVATE_KEY',
    'Its private key, as GitHub gives it out (PEM). Required with the id.',
    { isSecret: true, form: 'a private key of RSA in PEM', convert: pem, requiredIf: hasApp },
    Satisfies(isPrivateKey, 'must be the private key of the App, in PEM'),
  )
  privateKey: string;

  @FromVariable(
    'GITHUB_APP_SANDBOX_PERMISSIONS',
    'What tokens for sandboxes may do besides `contents:write`, `pull_requests:write` and `metadata:read`, where the installation has it: `workflows:write,packages:read`.',
    { form: 'a comma list of permissions', absent: {}, convert: parsePermissions },
    Satisfies((permissions) => typeof permissions === 'object', PERMISSIONS),
  )
  sandboxPermissions: GithubPermissions;

  @FromVariable(
    'GITHUB_APP_FOR',
    'For whom an installation stands in who has no token of their own and asks for it: `none`, `members` (all who may start anything, wherever the App is installed), or groups of the issuer with repositories, `group=owner/*,…`.',
    { default: 'none', form: 'none, members, or a comma list of group=owner/*', convert: parseRules },
    Satisfies((rules) => rules !== null, RULES),
  )
  standsInFor: readonly StandInRule[];
}

/** The groups of the issuer whose members an installation may stand in for. */
export function standInGroups({ standsInFor }: Pick<GithubAppConfig, 'standsInFor'>): string[] {
  return standsInFor.flatMap((rule) => ('group' in rule ? [rule.group] : []));
}
