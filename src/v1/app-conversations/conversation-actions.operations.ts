import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiBodyExamples } from '../../common/openapi/api-body-examples.decorator.js';
import { ApiProblems } from '../../common/openapi/api-problems.decorator.js';
import { invalidInput } from '../../common/openapi/documented-error.js';
import { SuccessDto } from '../../common/openapi/success.dto.js';
import { SANDBOX_PROBLEMS, UNKNOWN_CONVERSATION } from './conversation-problems.js';
import { ConfirmationResponseDto } from './dto/confirmation-response.dto.js';
import { MessageSentDto } from './dto/message-sent.dto.js';
import { SendMessageDto } from './dto/send-message.dto.js';

const BAD_PATH = invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.');

/** Documents `POST /api/v1/app-conversations/{id}/send-message`. */
export function SendMessageOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'send_message_to_conversation',
      summary: 'Say something',
      description: 'The agent takes it up at once, or with its next step when it works already.',
    }),
    ApiBodyExamples(SendMessageDto, {
      text: {
        summary: 'A text',
        value: { content: [{ type: 'text', text: 'Use the staging host instead.' }], run: true },
      },
      image: {
        summary: 'An image beside it; the agent waits for more',
        value: {
          content: [
            { text: 'It looks like this:' },
            { type: 'image', image_urls: ['https://images.example.com/screen.png'] },
          ],
          run: false,
        },
      },
    }),
    ApiOkResponse({ type: MessageSentDto, description: 'The agent server has it' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      413,
      415,
      invalidInput(['body', 'content'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/respond-to-confirmation`. */
export function RespondToConfirmationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'respond_to_confirmation',
      summary: 'Allow or refuse what the agent waits for',
      description: 'Only while the conversation is waiting_for_confirmation.',
    }),
    ApiBodyExamples(ConfirmationResponseDto, {
      accept: { summary: 'Go on', value: { accept: true } },
      reject: { summary: 'Do not', value: { accept: false, reason: 'Use the staging host.' } },
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent goes on' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      ...SANDBOX_PROBLEMS,
      413,
      415,
      invalidInput(['body', 'accept'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/pause`. */
export function PauseConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'pause_app_conversation',
      summary: 'Pause the agent',
      description: 'It stops after its current step, asked again at once. The sandbox goes on running.',
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent pauses' }),
    ApiProblems(UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, BAD_PATH),
  );
}

/** Documents `POST /api/v1/app-conversations/{id}/run`. */
export function RunConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'run_app_conversation',
      summary: 'Let the agent go on',
      description: 'After a pause, an error, or messages that were sent without `run`.',
    }),
    ApiOkResponse({ type: SuccessDto, description: 'The agent works' }),
    ApiProblems(UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS, BAD_PATH),
  );
}
