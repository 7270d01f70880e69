export const PERMISSION_LEVELS = ['read', 'write', 'admin'] as const;
type PermissionLevel = (typeof PERMISSION_LEVELS)[number];
/** Of an installation of a GitHub App or of its tokens, by GitHub's names. */
export type GithubPermissions = Readonly<Record<string, PermissionLevel>>;
