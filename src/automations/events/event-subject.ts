import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { cleanText, textHead } from '@slipway/common/well-formed-text.js';
import { OrNull } from '@slipway/api/openapi/responses.js';
import type { ToldChangeRequest } from '@slipway/git-providers/git-provider.js';

/** What an event is about, for people; strangers wrote it. */
@ApiSchema({ name: 'AutomationEventSubject' })
export class EventSubjectDto {
  @ApiProperty({ example: 'issues.labeled' }) key: string;
  @ApiProperty({ type: 'integer', nullable: true, example: 23 }) number: number | null;
  @OrNull('Totals are wrong') title: string | null;
  /** Address of its page, http or https. */
  @OrNull('https://github.com/octo/app/issues/23') url: string | null;
  @OrNull('ada') by: string | null;
}

/** What a run keeps of its event. */
export interface RunEvent extends EventSubjectDto {
  /** Absent where it is about none, and in rows of earlier versions; what it is, its host is asked. */
  change_request?: { source: string; repository: string; number: number };
}

/** A row of a run has less than a kilobyte of it. */
const MAX_TITLE = 120;
const MAX_NAME = 60;
const MAX_KEY = 100;
const MAX_URL = 300;

/**
 * Members in which hosts put the subject, narrower ones first: GitLab puts a comment in `object_attributes`, beside its
 * issue.
 */
const PLACES = [
  'issue',
  'merge_request',
  'pull_request',
  'pullrequest',
  'pullRequest',
  'discussion',
  'workflow_run',
  'check_run',
  'check_suite',
  'object_attributes',
];
const TITLES = [['title'], ['display_title'], ['name']];
const URLS = [['html_url'], ['links', 'html', 'href'], ['links', 'self', '0', 'href'], ['url']];
const NUMBERS = ['number', 'iid', 'id'];
const NAMES = [
  ['sender', 'login'],
  ['user', 'username'],
  ['actor', 'nickname'],
  ['actor', 'displayName'],
  ['actor', 'name'],
];

/** Reads the subject from a payload of any host; members that the payload lacks are null. */
export function subjectOf(key: string, payload: unknown): EventSubjectDto {
  const place = PLACES.find((name) => first(TITLES, jsonAt(payload, name)) !== null);
  const about = place === undefined ? null : jsonAt(payload, place);
  const number = NUMBERS.map((name) => jsonNumber(about, name)).find((found) => found !== null);
  return {
    key: line(key, MAX_KEY),
    number: number !== undefined && Number.isSafeInteger(number) ? number : null,
    title: lineOrNull(first(TITLES, about), MAX_TITLE),
    url: webAddress(first(URLS, about)),
    by: lineOrNull(first(NAMES, payload), MAX_NAME),
  };
}

/** @param told by the event, which a stranger may have caused: it names a pull request, and says nothing about it */
export function runEvent(
  subject: Readonly<EventSubjectDto>,
  source: string,
  told: ToldChangeRequest | null,
  payload: unknown,
): RunEvent {
  const number = told?.numbers[0];
  // GitHub tells of issues and of comments on pull requests alike.
  const isIssue = Boolean(jsonAt(payload, 'issue')) && !jsonAt(payload, 'issue', 'pull_request');
  return told === null || number === undefined || told.repository.length > MAX_URL || isIssue
    ? subject
    : { ...subject, change_request: { source, repository: told.repository, number } };
}

function first(paths: readonly (readonly string[])[], value: unknown): string | null {
  return paths.map((path) => jsonText(value, ...path)).find((text) => text !== null && text !== '') ?? null;
}

function lineOrNull(text: string | null, most: number): string | null {
  return text === null ? null : line(text, most);
}

function line(text: string, most: number): string {
  return textHead(
    cleanText(text.slice(0, 10 * most))
      .replaceAll(/[\p{C}\s]+/gu, ' ')
      .trim(),
    most,
  );
}

function webAddress(text: string | null): string | null {
  const address = text === null || text.length > MAX_URL ? null : URL.parse(text);
  return address !== null && /^https?:$/.test(address.protocol) && address.username === ''
    ? address.href
    : null;
}
