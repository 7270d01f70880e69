import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import type { FieldOptions } from '@slipway/api/validation/field.js';
import {
  Choice,
  Flag,
  Nested,
  NestedList,
  Text,
  TextList,
} from '@slipway/api/validation/field-decorators.js';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../../sandboxes/sandbox-status.js';
import { agentServerSilent, sandboxNotRunning } from '../../running-conversations.js';
import { MAX_PARTS, type MessagePart, messagePartProblems, PART_TYPES } from '../../message-parts.js';

const SANDBOX_ID = '3kTMd9ZpQ2sVbX7cRfLw1A';
const MAX_PATH_LENGTH = 4096;
const MAX_REASON = 65_536;
/** Characters of all texts of a start, and of one text of any message. */
export const MAX_MESSAGE_TEXT = 262_144;
/** An image as a data URL may fill a body. */
const MAX_IMAGE_URL = 1_048_576;
export const SANDBOX_PROBLEMS: DocumentedProblem[] = [
  thrown(
    sandboxNotRunning('PAUSED', SANDBOX_ID),
    'The sandbox is PAUSED or STARTING, or the state of the conversation forbids it',
  ),
  thrown(sandboxNotRunning('MISSING', SANDBOX_ID), 'The sandbox is gone'),
  thrown(agentServerSilent(), 'The agent server failed'),
  thrown(
    sandboxNotRunning('ERROR', SANDBOX_ID),
    'The sandbox failed, or the service is not available at the moment',
  ),
];

function ShortName(description: string, most: number, example: string): PropertyDecorator {
  return Text(description, {
    required: true,
    example,
    form: { minLength: 1, maxLength: most },
    rule: (name) =>
      name === '' || name.length > most ? `Expected a name of 1 to ${most} characters.` : null,
  });
}

export function WorkspacePath(description: string, options: FieldOptions): PropertyDecorator {
  return Text(description, { ...options, maxLength: MAX_PATH_LENGTH });
}

class ImageUrlDto {
  @Text('Address (http, https) or the image itself as a data URL.', {
    required: true,
    example: 'https://images.example.com/screen.png',
    maxLength: MAX_IMAGE_URL,
  })
  url: string;
}

// One of the three; OpenAPI Generator takes an `anyOf` for a choice of classes, and its Python client then sends `{}`.
@SchemaRules({ not: { properties: { text: { not: {} }, image_urls: { not: {} }, image_url: { not: {} } } } })
class MessagePartDto implements MessagePart {
  @Choice('Which of the two; may be left out.', { values: PART_TYPES, example: 'text' })
  type?: (typeof PART_TYPES)[number];

  @Text('What is said.', { example: 'Add a test for the parser.', maxLength: MAX_MESSAGE_TEXT })
  text?: string;

  @TextList('Addresses (http, https) of images, or the images themselves as data URLs.', {
    example: ['https://images.example.com/screen.png'],
    itemLength: MAX_IMAGE_URL,
  })
  image_urls?: string[];

  @Nested('One image, in the other way that clients write it.', { type: ImageUrlDto })
  image_url?: ImageUrlDto;

  @Flag('A hint for models that keep prompts.', { example: false }) cache_prompt?: boolean;
}

class UserMessageDto {
  @Choice('Who speaks.', { values: ['user'], default: 'user', example: 'user' }) role?: 'user';

  @NestedList('What is said, in parts.', {
    type: MessagePartDto,
    required: true,
    listRule: messagePartProblems,
    form: { minItems: 1, maxItems: MAX_PARTS },
  })
  content: MessagePartDto[];
}

@ApiSchema({ name: 'AppSendMessageRequest' })
export class SendMessageDto extends UserMessageDto {
  @Flag('Whether the agent takes it up at once.', { default: true, example: true }) run?: boolean;
}

@ApiSchema({ name: 'AppSendMessageResponse' })
export class MessageSentDto {
  @ApiProperty({ example: true }) success: boolean;

  @ApiProperty({ enum: SANDBOX_STATUSES, enumName: 'SandboxStatus', example: 'RUNNING' })
  sandbox_status: SandboxStatus;

  @OrNull(null) message: string | null;
}

@ApiSchema({ name: 'PendingMessageRequest' })
export class PendingMessageDto extends UserMessageDto {}

@ApiSchema({ name: 'PendingMessageResponse' })
export class MessageQueuedDto {
  @ApiProperty({ format: 'uuid', example: '1c2d3e4f-5061-4728-8394-a5b6c7d8e9f0' }) id: string;
  @ApiProperty({ example: true }) queued: boolean;
  @Shown('Its place among those that wait, from 1.', 1, { type: 'integer' }) position: number;
}

@ApiSchema({ name: 'SendMessageRequest' })
export class InitialMessageDto extends UserMessageDto {
  @Flag('Means nothing here: the agent starts to work.', { default: false, example: true }) run?: boolean;
}

@ApiSchema({ name: 'ConfirmationResponseRequest' })
export class ConfirmationResponseDto {
  @Flag('Whether the agent may do what it asks for.', { required: true, example: false }) accept: boolean;

  @Text('Why not; the agent reads it.', {
    nullable: true,
    example: 'Use the staging host.',
    maxLength: MAX_REASON,
  })
  reason?: string | null;
}

@ApiSchema({ name: 'SwitchAcpModelRequest' })
export class SwitchAcpModelDto {
  @ShortName('Model that the program of the agent offers.', 500, 'claude-sonnet-4-5') model: string;
}

@ApiSchema({ name: 'SwitchProfileRequest' })
export class SwitchProfileDto {
  @ShortName('Name of a profile stored with `POST /api/v1/settings/profiles/{name}`.', 64, 'fast')
  profile_name: string;
}

export class FileQueryDto {
  @WorkspacePath("Path of the file: absolute, or below the conversation's folder.", {
    default: 'PLAN.md',
    example: 'PLAN.md',
  })
  file_path?: string;
}

export class ResumeQueryDto {
  @Flag(
    'Whether a sandbox that is paused or has failed is started first, which takes a few seconds; otherwise that is refused.',
    { default: true, example: true },
  )
  resume?: boolean;
}

export class GitQueryDto {
  @Flag(
    'Whether a sandbox that is paused or has failed is started first, which takes a few seconds. Unless given, only where nothing was kept of it. Never for a key without the scope `run`.',
    { example: false },
  )
  resume?: boolean;

  @WorkspacePath("Path: absolute, or below the conversation's folder, which is `.`.", {
    required: true,
    example: '.',
  })
  path: string;

  @Text('What to compare with; by default where the branch left the remote.', { example: 'main' })
  ref?: string;
}
