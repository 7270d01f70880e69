import { CLONE_FILTERS, MAX_CLONE_DEPTH } from '@slipway/common/clone-part.js';
import { z } from 'zod';

/** A name that git takes and does not mistake for an option; the rules are in git-check-ref-format(1). */
export const branchSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^-\s~^:?*[\\\p{Cc}]([^\s~^:?*[\\\p{Cc}]*)$/u, 'is not a branch name');

/** Credential helpers speak a line-based protocol. */
const oneLine = z.string().refine((text) => !/\p{Cc}/u.test(text), 'must not have control characters');

const httpUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => new URL(url).username === '' && new URL(url).password === '', 'must not hold credentials');

/** Below it the password is shown as a bearer token at once, since the server may refuse names and passwords; absent: when asked. */
const bearer = httpUrl.optional();

const gitIdentitySchema = z.object({ name: oneLine.min(1).max(200), email: oneLine.min(1).max(320) });

/** What an agent may do with its conversation's repository, the least first. */
export const GIT_MODES = ['none', 'read', 'write'] as const;
export type GitMode = (typeof GIT_MODES)[number];

/** Kept in memory only. */
export const gitAccessSchema = z.object({
  credentials: z.array(
    z.object({
      /** `https://github.com`; other servers do not get the credentials. */
      origin: httpUrl.transform((url) => new URL(url).origin),
      username: oneLine,
      password: oneLine.min(1),
      bearer,
      /** It is for this address alone, and never for tools. Absent: for all of the server. */
      repository: httpUrl.optional(),
    }),
  ),
  /** Absent in requests of earlier versions: `write`. */
  mode: z.enum(GIT_MODES).optional(),
  /** Whether tools get the credentials, through git's credential helper; the agent server uses them anyway. */
  expose: z.boolean(),
  /** Identity for the agent's commits; null keeps that of the repository or the sandbox. */
  identity: gitIdentitySchema.nullable(),
});

/** Answered when the clone is done (not in the published API). A repeated request leaves repositories alone. */
export const gitPrepareSchema = z.object({
  /** The repository to clone; null creates an empty one. */
  url: httpUrl.nullable(),
  /** Inside the workspace, and absent or empty. */
  directory: z.string().min(1),
  branch: branchSchema.nullable(),
  new_branch: branchSchema.nullish(),
  /** What `url` is a fork of, and the branch that its changes go to: the remote `upstream`. */
  upstream: z.object({ url: httpUrl, branch: branchSchema }).nullish(),
  /** What a host keeps of a pull request, which is fetched as `branch`. */
  ref: z
    .string()
    .regex(/^refs\/[a-z-]{1,30}\/\d{1,18}\/[a-z]{1,30}$/)
    .nullish(),
  /** Set if nothing can be pushed: it becomes the push URL, which git's error message then shows. */
  no_push: z
    .string()
    .regex(/^[\w #-]{1,200}$/)
    .nullish(),
  username: oneLine.nullable(),
  password: oneLine.nullable(),
  bearer,
  identity: gitIdentitySchema.nullable(),
  /** Only submodules at the origin of the address, with the same credentials. */
  submodules: z.boolean().nullish(),
  lfs: z.boolean().nullish(),
  /** Commits to fetch of each branch; null fetches all. */
  depth: z.int().min(1).max(MAX_CLONE_DEPTH).nullish(),
  /** Filter of a partial clone; null fetches everything. */
  filter: z.enum(CLONE_FILTERS).nullish(),
  /** Seconds. */
  timeout: z.number().positive().max(3600).default(600),
});

export type PrepareRequest = z.infer<typeof gitPrepareSchema>;

/** Not in the published API. The credentials are for the server of the address only. */
export const gitPushSchema = z.object({
  url: httpUrl,
  /** Inside the repository. */
  directory: z.string().min(1),
  /** The branch to push; null means the one that is checked out. */
  branch: branchSchema.nullable(),
  /** The fork to push to, from now on; absent means the address of `origin`. */
  to: httpUrl.nullish(),
  username: oneLine.nullable(),
  password: oneLine.nullable(),
  bearer,
});

export type PushRequest = z.infer<typeof gitPushSchema>;

export type GitAccess = z.output<typeof gitAccessSchema>;
export type GitServerCredential = GitAccess['credentials'][number];
export type GitIdentity = z.output<typeof gitIdentitySchema>;

export interface GitChange {
  status: 'MOVED' | 'ADDED' | 'DELETED' | 'UPDATED';
  /** Relative to the repository. */
  path: string;
}

export interface GitCommit {
  sha: string;
  short_sha: string;
  subject: string;
  author: string;
  timestamp: string;
}

export interface GitCommitsPage {
  commits: GitCommit[];
  has_more: boolean;
}

export interface GitDiff {
  modified: string | null;
  original: string | null;
}

export type GitPrepareRequest = z.input<typeof gitPrepareSchema>;

export const GIT_PREPARE_FAILURES = [
  'authentication',
  'repository_not_found',
  'branch_not_found',
  'unreachable',
  'directory_not_empty',
  'no_space',
  'timeout',
  'failed',
] as const;
export type GitPrepareFailure = (typeof GIT_PREPARE_FAILURES)[number];

export interface GitPrepareResponse {
  ok: boolean;
  failure: GitPrepareFailure | null;
  /** The last lines that git wrote, secrets masked. */
  output: string;
  /** The commit that is checked out; null in a repository without commits. */
  head: string | null;
  branch: string | null;
  /** What may surprise the user; empty where the repository was there before. */
  notices: string[];
}

export type GitPushRequest = z.input<typeof gitPushSchema>;

export interface GitPushResponse {
  ok: boolean;
  branch: string | null;
  /** The server refuses these credentials. */
  denied?: boolean;
  /** The last lines that git wrote, secrets masked. */
  output: string;
}

/** Variables of the setup script, in a repository's `.git`: lines of name, `=` and the value as bash reads it. */
export const SETUP_ENVIRONMENT = 'slipway-setup-env';
