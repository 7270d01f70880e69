import { Flag, Integer } from '../../../../common/validation/number-fields.js';
import { Instant, RepeatedText, Text } from '../../../../common/validation/text-fields.js';
import type { ConversationFilter } from '../../conversation.repository.js';

/** Query of `GET /api/v1/app-conversations/count`. */
export class ConversationFilterQueryDto {
  @Text({ description: 'Part of the title; case does not count.', example: 'parser' })
  title__contains?: string;

  @Instant({ description: 'Created at this moment or later.', example: '2026-11-01T00:00:00Z' })
  created_at__gte?: Date;

  @Instant({ description: 'Created before this moment.', example: '2026-12-01T00:00:00Z' })
  created_at__lt?: Date;

  @Instant({ description: 'Changed at this moment or later.', example: '2026-11-01T00:00:00Z' })
  updated_at__gte?: Date;

  @Instant({ description: 'Changed before this moment.', example: '2026-12-01T00:00:00Z' })
  updated_at__lt?: Date;

  @Text({ description: 'Only those in this sandbox.', example: '3kTMd9ZpQ2sVbX7cRfLw1A' })
  sandbox_id__eq?: string;
}

export function toConversationFilter(
  query: ConversationFilterQueryDto,
  withSubConversations: boolean,
): ConversationFilter {
  return {
    titleContains: query.title__contains,
    createdFrom: query.created_at__gte,
    createdBefore: query.created_at__lt,
    updatedFrom: query.updated_at__gte,
    updatedBefore: query.updated_at__lt,
    sandboxId: query.sandbox_id__eq,
    withSubConversations,
  };
}

/** Query of `GET /api/v1/app-conversations/search`. */
export class SearchConversationsQueryDto extends ConversationFilterQueryDto {
  @Text({
    description: '`next_page_id` of the page before.',
    example: 'MjAyNi0xMS0yMVQwOTozMDowMC4wMDAwMDBaIDVkMmY4YzFl',
  })
  page_id?: string;

  @Integer({ description: 'Conversations on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;

  @Flag({ description: 'Also those that are part of another one.', default: false, example: true })
  include_sub_conversations?: boolean;
}

/** Query of `GET /api/v1/app-conversations`. */
export class ListConversationsQueryDto extends SearchConversationsQueryDto {
  @RepeatedText({
    description: 'Id of a conversation; repeat it for more, at most 100. Then nothing else counts.',
    most: 100,
    example: ['5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f'],
  })
  ids?: string[];
}

const LONGEST_PATH = 4096;

function pathProblem(path: string): string | null {
  return path.length > LONGEST_PATH ? `Expected at most ${LONGEST_PATH} characters.` : null;
}

/** Query of `GET /api/v1/app-conversations/{id}/file`. */
export class FileQueryDto {
  @Text({
    description: "Path of the file: absolute, or below the conversation's folder.",
    default: 'PLAN.md',
    example: 'PLAN.md',
    rule: pathProblem,
  })
  file_path?: string;
}

/** Query of the two routes about what git sees. */
export class GitQueryDto {
  @Text({
    required: true,
    description: "Path: absolute, or below the conversation's folder, which is `.`.",
    example: '.',
    rule: pathProblem,
  })
  path: string;

  @Text({
    description: 'What to compare with; by default where the branch left the remote.',
    example: 'main',
  })
  ref?: string;
}
