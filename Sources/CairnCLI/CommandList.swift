/// Every subcommand, in the order of `cairn help`. A new command adds its type here.
enum CommandList {
  static let all: [any Command.Type] = clientCommands + accountsCommands + serverCommands

  private static let clientCommands: [any Command.Type] = [
    InitCommand.self, SyncCommand.self, StatusCommand.self, ParkedCommand.self, LogCommand.self, DoctorCommand.self,
    DeinitCommand.self, AlterCommand.self, DecideCommand.self, SimulateCommand.self,
  ]

  private static let accountsCommands: [any Command.Type] = [
    AccountsInitCommand.self, AccountsAddCommand.self, AccountsListCommand.self, AccountsEditCommand.self,
    AccountsRemoveCommand.self, AccountsSelectCommand.self, AccountsSyncCommand.self, AccountsStatusCommand.self,
    AccountsMigrateCommand.self, AccountsEnableCommand.self, AccountsDisableCommand.self, AccountsSwitchCommand.self,
    AccountsAdoptCommand.self, AccountsEncryptCommand.self,
  ]

  #if Server
    private static let serverCommands: [any Command.Type] = [
      ServeCommand.self,
      UserAddCommand.self, UserSetCommand.self, UserListCommand.self, UserTokenCommand.self, UserQuotaCommand.self,
      UserRemoveCommand.self,
      ServerTokenAddCommand.self, ServerTokenListCommand.self, ServerTokenRemoveCommand.self,
      ServerKeyAddCommand.self, ServerKeyListCommand.self, ServerKeyRemoveCommand.self,
      ServerBackupCommand.self, ServerRestoreCommand.self, ServerCopyCommand.self,
      DemoCommand.self,
    ]
  #else
    // Built without the package trait `Server`: no server libraries, no server commands.
    private static let serverCommands: [any Command.Type] = []
  #endif
}
