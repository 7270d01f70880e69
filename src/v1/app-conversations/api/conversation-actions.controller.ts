import { Body, Controller, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { unknownProfile } from '../../../settings/profiles/profiles.service.js';
import { ConversationOwner, NeedsAccess } from '../../events/conversation-access.guard.js';
import { ConversationIdDto, UNKNOWN_CONVERSATION } from '../../events/events.dto.js';
import { USER_FULL } from '../../events/followed-conversation.repository.js';
import { ConversationActionsService } from '../conversation-actions.service.js';
import { toSendMessageRequest } from '../message-parts.js';
import { PendingMessagesService, startFailed, tooManyPending } from '../pending/pending-messages.service.js';
import { acpAgentSilent, ModelSwitchService } from '../model-switch.service.js';
import { sandboxNotRunning, type WokenFrom } from '../running-conversations.js';
import {
  ConfirmationResponseDto,
  MessageQueuedDto,
  MessageSentDto,
  PendingMessageDto,
  ResumeQueryDto,
  SANDBOX_PROBLEMS,
  SendMessageDto,
  SwitchAcpModelDto,
  SwitchProfileDto,
} from './dto/conversation-actions.dto.js';

const NO_ROOM_LEFT = thrown(USER_FULL, 'The conversation, or its user, has as many events as may be');
const PROBLEMS = [UNKNOWN_CONVERSATION, ...SANDBOX_PROBLEMS];
const UNKNOWN_PROFILE = thrown(unknownProfile('fast'), 'Unknown conversation or profile');
const PROFILE_CONFLICT = thrown(
  sandboxNotRunning('PAUSED', '{id}'),
  'The sandbox does not run, or the model cannot be called',
);
const NO_ACP_AGENT: DocumentedProblem = {
  status: 400,
  code: 'conflict',
  detail: 'The conversation has no ACP agent: start another one with the model that you want.',
  description: 'No ACP agent, or one that keeps its model; in the words of the agent server',
};
const SLOW_AGENT = thrown(acpAgentSilent(), 'The program of the agent is too slow');
const WOKEN: Record<NonNullable<WokenFrom>, string> = {
  PAUSED: 'The sandbox was paused, and was resumed for it.',
  ERROR: 'The sandbox had failed, and was started again for it.',
};
const MESSAGES = {
  text: {
    summary: 'A text',
    value: { content: [{ type: 'text', text: 'Use the staging host instead.' }] },
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
};

@ApiTags('Conversations')
@Controller('api/v1/app-conversations/:id')
export class ConversationActionsController {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly models: ModelSwitchService,
  ) {}

  @Post('send-message')
  @NeedsAccess('steer')
  @ApiRoute('send_message_to_conversation', 'Say something', {
    description:
      'The agent takes it up at once, or with its next step when it works already. A sandbox that is paused or has failed is started for it.',
    answer: { type: MessageSentDto, description: 'The agent server has it' },
    examples: MESSAGES,
    problems: [...PROBLEMS, NO_ROOM_LEFT],
  })
  async sendMessage(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() { resume = true }: ResumeQueryDto,
    @Body() body: SendMessageDto,
  ): Promise<MessageSentDto> {
    const woken = await this.actions.sendMessage(userId, id, toSendMessageRequest(body), resume);
    return {
      success: true,
      sandbox_status: 'RUNNING',
      message: woken && WOKEN[woken],
    };
  }

  @Post('respond-to-confirmation')
  @NeedsAccess('steer')
  @ApiRoute('respond_to_confirmation', 'Allow or refuse what the agent waits for', {
    description: 'Only while the conversation is waiting_for_confirmation.',
    answer: { type: SuccessDto, description: 'The agent goes on' },
    examples: {
      reject: { summary: 'Do not', value: { accept: false, reason: 'Use the staging host.' } },
      accept: { summary: 'Go on', value: { accept: true } },
    },
    problems: PROBLEMS,
  })
  async respond(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() { accept, reason }: ConfirmationResponseDto,
  ): Promise<SuccessDto> {
    return succeeded(
      this.actions.respondToConfirmation(userId, id, {
        accept,
        ...(reason !== undefined && reason !== null && { reason }),
      }),
    );
  }

  @Post('pause')
  @NeedsAccess('steer')
  @ApiRoute('pause_app_conversation', 'Pause the agent', {
    description: 'It stops after its current step, asked again at once. The sandbox goes on running.',
    answer: { type: SuccessDto, description: 'The agent pauses' },
    problems: PROBLEMS,
  })
  async pause(@ConversationOwner() userId: string, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    return succeeded(this.actions.pause(userId, id));
  }

  @Post('run')
  @NeedsAccess('steer')
  @ApiRoute('run_app_conversation', 'Let the agent go on', {
    description: 'After a pause, an error, or messages that were sent without `run`.',
    answer: { type: SuccessDto, description: 'The agent works' },
    problems: PROBLEMS,
  })
  async run(@ConversationOwner() userId: string, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    return succeeded(this.actions.run(userId, id));
  }

  @Post('switch_profile')
  @NeedsAccess('own')
  @ApiRoute('switch_conversation_profile', 'Go on with the model of a stored profile', {
    description: 'From the next step of the agent on, with all that it knows.',
    answer: { type: SuccessDto, description: 'The agent uses its model' },
    problems: [UNKNOWN_PROFILE, PROFILE_CONFLICT, 410, 502, 503],
  })
  async switchProfile(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() { profile_name: name }: SwitchProfileDto,
  ): Promise<SuccessDto> {
    return succeeded(this.models.switchProfile(userId, id, name));
  }

  @Post('switch_acp_model')
  @NeedsAccess('own')
  @ApiRoute('switch_conversation_acp_model', 'Let an ACP agent go on with another model', {
    description: 'From its next turn on, with all that it knows. The conversation shows the new model.',
    answer: { type: SuccessDto, description: 'The agent uses it' },
    problems: [NO_ACP_AGENT, ...PROBLEMS, SLOW_AGENT],
  })
  async switchAcpModel(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() { model }: SwitchAcpModelDto,
  ): Promise<SuccessDto> {
    return succeeded(this.models.switchAcpModel(userId, id, model));
  }
}

const QUEUE =
  'The id is that of a conversation, or `task-` and the id of its start task. The message is kept, and the agent ' +
  'gets it once, after those before it: when the start is READY, or at once where it is. While the sandbox is ' +
  'paused it waits for the resume. Messages of a start that fails are dropped.';
const QUEUE_PROBLEMS = [
  UNKNOWN_CONVERSATION,
  thrown(startFailed(), 'The start failed'),
  thrown(sandboxNotRunning('MISSING', ''), 'The sandbox is gone'),
  thrown(tooManyPending(), 'Too many requests, or ten messages wait already'),
];

@ApiTags('Conversations')
@Controller('api/v1/conversations/:id/pending-messages')
export class PendingMessagesController {
  constructor(private readonly pending: PendingMessagesService) {}

  @Post()
  @NeedsAccess('own')
  @ApiRoute('queue_pending_message', 'Say something as soon as the conversation is ready', {
    description: QUEUE,
    status: 201,
    answer: { type: MessageQueuedDto, description: 'It is kept' },
    examples: { text: MESSAGES.text },
    problems: [...QUEUE_PROBLEMS, NO_ROOM_LEFT],
  })
  async queue(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() body: PendingMessageDto,
  ): Promise<MessageQueuedDto> {
    const queued = await this.pending.queue(userId, id, toSendMessageRequest(body).content);
    return { ...queued, queued: true };
  }
}
