import { ApiSchema } from '@nestjs/swagger';
import { Choice } from '../../../common/validation/choice.decorator.js';
import { Flag } from '../../../common/validation/flag.decorator.js';
import { NestedList } from '../../../common/validation/nested-list.decorator.js';
import type { StartMessage } from '../start/start-request.js';
import { MessagePartDto, messagePartProblems, toContent } from './message-part.dto.js';

/** The first message of a conversation. */
@ApiSchema({ name: 'SendMessageRequest' })
export class InitialMessageDto {
  @Choice({ values: ['user'], description: 'Who speaks.', default: 'user', example: 'user' })
  role?: 'user';

  @NestedList({
    type: MessagePartDto,
    required: true,
    description: 'What is said, in parts.',
    listRule: messagePartProblems,
  })
  content: MessagePartDto[];

  @Flag({ description: 'Means nothing here: the agent starts to work.', default: false, example: true })
  run?: boolean;
}

export function toStartMessage({ content, run = false }: InitialMessageDto): StartMessage {
  return { role: 'user', content: content.map(toContent), run };
}
