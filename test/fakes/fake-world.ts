import type { FakeGithubApp } from './fake-github.app.js';
import type { FakeOAuth } from './fake-oauth.js';

/** What a fake git host contains, in no vendor's words; every fake serves the same world in its own wire format. */
export interface FakeWorld {
  /** The one token the fake accepts. */
  token: string;
  user: { id: string; login: string; name: string | null; email: string | null };
  repositories: FakeRepository[];
  changeRequests: FakeChangeRequest[];
  issues: FakeIssue[];
  /** Other accounts, and what they may do in every repository. */
  members?: FakeMember[];
  /** Bitbucket: the user may not see what others may do. */
  isNoAdministrator?: boolean;
  /** Installations of a GitHub App, by the owners they are for; absent if the token is none of an app. */
  appInstallations?: { id: number; owner: string }[];
  /** Called when a change request is opened here. */
  onOpened?: (change: FakeChangeRequest) => void;
  /** GitHub: the operator's App. */
  app?: FakeGithubApp;
  /** Tokens of users end, and are renewed. */
  oauth?: FakeOAuth;
  /** GitHub: a fine-grained token, for which there is no permission to read check runs and suites. */
  isFineGrained?: boolean;
}

export interface FakeMember {
  id: string;
  login: string;
  permission: 'none' | 'read' | 'write';
}

export interface FakeRepository {
  /** `owner/name` (any depth on GitLab; `workspace/slug`; `PROJ/slug`). */
  name: string;
  /** Full name before it was moved. */
  formerName?: string;
  /** ISO 8601. */
  activeAt: string;
  archived?: boolean;
  fork?: boolean;
  /** Full name of the repository that it is a fork of, where that is in the world. */
  forkOf?: string;
  /** Default `allowed`. */
  forking?: 'allowed' | 'forbidden';
  /** How often its forks have to be asked for before they are there. */
  forkLookups?: number;
  /** Lookups that a fork still needs before it is there. */
  lookups?: number;
  mirror?: boolean;
  empty?: boolean;
  /** Default `main`. */
  defaultBranch?: string;
  /** Further branches, from which and to which change requests may be opened. */
  branches?: string[];
  /** Openings that are refused before its newest push is known. */
  missesPush?: number;
  /** Branches that are at the same commit. */
  twins?: string[][];
  /** Default false. */
  isPublic?: boolean;
  /** Default 0. */
  stars?: number;
  /** The user may push. Default true. */
  writable?: boolean;
  /** Names of root entries. Default `['README.md', 'src']`. */
  rootEntries?: string[];
  /** File names in `.openhands/microagents`. */
  microagents?: string[];
  /** File names in `.openhands/skills`. */
  skills?: string[];
}

export interface FakeChangeRequest {
  repository: string;
  number: number;
  /** Begin of its page's address; one that leads nowhere by default. */
  pages?: string;
  title: string;
  /** ISO 8601. */
  updatedAt: string;
  draft?: boolean;
  /** Set for those that were opened here. */
  sourceBranch?: string;
  /** Full name of the fork that has the source branch; one that is not in the world is deleted. */
  fork?: string;
  /** Who may push to the repository may push to the source branch. */
  allowsMaintainers?: boolean;
  targetBranch?: string;
  body?: string;
  /** `later`: UNKNOWN on the first read, conflicting from the second (GitHub computes it in the background). */
  conflicts?: 'yes' | 'no' | 'unknown' | 'later';
  /** GitLab has not looked for conflicts since a branch has moved, and does when REST is asked. */
  isUnchecked?: boolean;
  checks?: 'none' | 'passing' | 'pending' | 'failing' | 'error';
  /** What is left to answer: an open review thread, a reviewer who requested changes, or an open task. */
  unresolved?: 'none' | 'thread' | 'changes_requested' | 'task';
  /** What those who follow it see, see `fake-followed.ts`; made at the first look. */
  followed?: FakeFollowed;
}

export interface FakeFollowed {
  state: 'open' | 'merged' | 'closed';
  /** Head of the source branch, 40 hexadecimal digits. */
  head: string;
  checks: FakeCheck[];
  /** GitHub's workflows: the jobs of one are its checks, listed as they begin. */
  workflows: FakeWorkflow[];
  comments: FakeComment[];
  /** Bitbucket Cloud's tasks, which it does not list among comments. */
  tasks: FakeTask[];
  /** Logins. */
  approvedBy: string[];
  changesRequestedBy: string[];
}

export interface FakeCheck {
  id: number;
  name: string;
  /** The commit it ran for. */
  head: string;
  state: 'passed' | 'failed' | 'pending';
  /** A commit status, as older services report it, in place of a run of the host's own. */
  isStatus: boolean;
  log: string;
}

export interface FakeWorkflow {
  id: number;
  name: string;
  /** The commit it runs for. */
  head: string;
  /** GitHub's name for how it ended; null until it is over. */
  conclusion: 'SUCCESS' | 'FAILURE' | 'CANCELLED' | 'ACTION_REQUIRED' | 'STARTUP_FAILURE' | null;
}

export interface FakeComment {
  id: number;
  kind: 'thread' | 'comment' | 'review';
  /** Id of the first comment in the thread. */
  root: number;
  author: string;
  mayWrite: boolean;
  /** Whether an app, or the account of a token, wrote it. */
  isBot: boolean;
  body: string;
  path: string | null;
  line: number | null;
  /** ISO 8601. */
  createdAt: string;
  /** The first comment of a thread has it for the whole thread. */
  resolved: boolean;
}

export interface FakeTask {
  id: number;
  /** The comment that it belongs to. */
  root: number | null;
  author: string;
  body: string;
  /** ISO 8601. */
  createdAt: string;
  resolved: boolean;
}

export interface FakeIssue {
  repository: string;
  number: number;
  /** Begin of its page's address; one that leads nowhere by default. */
  pages?: string;
  title: string;
  /** ISO 8601. */
  updatedAt: string;
}
