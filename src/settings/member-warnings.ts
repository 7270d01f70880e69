import { ApiProperty } from '@nestjs/swagger';
import type { JsonObject } from '@slipway/common/json-access.js';
import { SETTINGS, type SettingsColumn } from './settings-table.js';

const MEMBER_WARNING_CODES = ['unknown_member', 'null_keeps'] as const;

/** A member of a request that did not change what its sender may think. */
export class MemberWarningDto {
  @ApiProperty({ enum: MEMBER_WARNING_CODES, example: 'unknown_member' })
  code: (typeof MEMBER_WARNING_CODES)[number];

  @ApiProperty({ example: 'lanugage' }) member: string;
  @ApiProperty({ example: 'This member is not known here.' }) detail: string;
}

const MAX_NAMED = 20;
const MAX_NAME = 100;

/** Members of responses, which forms send back with the rest. */
export const SHOWN_ONLY: ReadonlySet<string> = new Set([
  'provider_tokens_set',
  ...Object.entries(SETTINGS).flatMap(([name, { kind }]) => (kind === 'key' ? [`${name}_set`] : [])),
]);

export function unknownMembers(
  body: JsonObject,
  detail: string,
  isKnown: (name: string) => boolean,
): MemberWarningDto[] {
  return Object.keys(body)
    .filter((name) => !isKnown(name))
    .slice(0, MAX_NAMED)
    .map((name) => ({ code: 'unknown_member', member: name.slice(0, MAX_NAME), detail }));
}

/** Of members that null does not clear, those with a stored value that null has kept. */
export function keptByNull(
  given: Partial<Record<SettingsColumn, unknown>>,
  stored: Partial<Record<SettingsColumn, unknown>>,
): MemberWarningDto[] {
  return Object.entries(SETTINGS).flatMap(([name, setting]) => {
    const column = name as SettingsColumn;
    const isKept = 'nullKeeps' in setting && given[column] === null && (stored[column] ?? null) !== null;
    const hint = 'blankClears' in setting ? '; blank text clears it' : '';
    return isKept
      ? [{ code: 'null_keeps' as const, member: name, detail: `null keeps the stored value${hint}.` }]
      : [];
  });
}
