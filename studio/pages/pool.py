from studio.shell import shell
def build(runtime):
    with shell("pool"):
        pass
