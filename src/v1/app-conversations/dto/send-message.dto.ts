import { ApiSchema } from '@nestjs/swagger';
import type { SendMessageRequest } from '../../../agent-protocol/start-conversation-request.js';
import { Choice } from '../../../common/validation/choice.decorator.js';
import { Flag } from '../../../common/validation/flag.decorator.js';
import { NestedList } from '../../../common/validation/nested-list.decorator.js';
import { MessagePartDto, messagePartProblems, toContent } from './message-part.dto.js';

/** Body of `POST /api/v1/app-conversations/{id}/send-message`. */
@ApiSchema({ name: 'AppSendMessageRequest' })
export class SendMessageDto {
  @Choice({ values: ['user'], description: 'Who speaks.', default: 'user', example: 'user' })
  role?: 'user';

  @NestedList({
    type: MessagePartDto,
    required: true,
    description: 'What is said, in parts.',
    listRule: messagePartProblems,
  })
  content: MessagePartDto[];

  @Flag({ description: 'Whether the agent takes it up at once.', default: true, example: true })
  run?: boolean;
}

/** The message as agent servers take it. */
export function toSendMessageRequest({ content, run = true }: SendMessageDto): SendMessageRequest {
  return { role: 'user', content: content.map(toContent), run };
}
